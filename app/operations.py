"""What the routes of every kind of operation share: accepting one, and reading one under its kind."""

import logging
from typing import Any, TypeVar

import msgspec

from app.arrival import seconds_since_arrival
from app.auth import own_session
from app.idempotency import current_once
from app.state import state
from app.waiting import APPLIED, held, preferred_wait
from domain.operation import Operation, OperationKind, OperationStatus
from domain.session import Dialect, Session
from schemas.operations import operation_view
from schemas.time_limit import check_timeout
from tracing import mark

T = TypeVar("T", bound=msgspec.Struct)

log = logging.getLogger(__name__)

FOLLOWED = {
    APPLIED: {"description": "The wait that was followed, where one was preferred.", "schema": {"type": "string"}}
}


def accept(
    session: Session, kind: OperationKind, request: msgspec.Struct, timeout_seconds: float | None
) -> dict[str, Any]:
    """Raises ValidationError when it may not run for so long."""
    check_timeout(timeout_seconds, kind, state().settings.time_limits)
    return operation_view(accepted(session, kind, request, timeout_seconds))


def accepted(
    session: Session, kind: OperationKind, request: msgspec.Struct, timeout_seconds: float | None = None
) -> Operation:
    """Accepts an operation of a session, which the caller has shown to be its own (see app/auth.py).

    The answer is that of the acceptance, also when the operation has ended meanwhile, or a retry asks again: an ended
    one without its result would be taken for one that has none.
    """
    operation = state().store.operations.accept(
        session.id, kind, request, current_once(), seconds_since_arrival(), timeout_seconds
    )
    ids = {"session_id": session.id, "operation_id": operation.id}
    mark(**ids)
    log.info("%s %s of session %s accepted", kind, operation.id, session.id, extra=ids)
    return operation.as_accepted


def read(
    session_id: str, operation_id: str, kind: OperationKind, into: type[msgspec.Struct]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The operation, awaited as the caller prefers, with its result once COMPLETED."""
    own_session(session_id, Dialect.NATIVE)
    seconds, followed = preferred_wait(state().settings.default_wait)
    operation, result = awaited(session_id, operation_id, kind, into, seconds)
    return operation_view(operation, result, state().store.operations.ahead(operation)), followed


def awaited(
    session_id: str, operation_id: str, kind: OperationKind, into: type[T], seconds: float
) -> tuple[Operation, T | None]:
    """The operation, held for as long until it has ended, and its result once COMPLETED."""
    operations = state().store.operations
    with held() as may_wait:
        operation = operations.wait(session_id, operation_id, kind, seconds if may_wait else 0.0)
    completed = operation.status is OperationStatus.COMPLETED
    return operation, operations.answer(operation, into) if completed else None
