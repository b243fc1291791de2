"""What the operation routes of both APIs share: accepting one, and reading one under its kind."""

import logging

import msgspec

from app.arrival import seconds_since_arrival
from app.idempotency import current_idempotency_key
from app.state import state
from app.waiting import held
from domain.kinds import KINDS
from domain.operation import Operation, OperationKind, OperationStatus
from domain.session import Session
from schemas.calls import RequestContext
from tracing import mark

log = logging.getLogger(__name__)


def context_of(session: Session) -> RequestContext:
    settings = state().settings
    return RequestContext(session.spec, settings.limits, settings.horizon)


def accepted(
    session: Session, kind: OperationKind, request: msgspec.Struct, timeout_seconds: float | None = None
) -> Operation:
    """Accepts an operation of a session, which the caller has shown to be its own (see app/auth.py).

    The answer is that of the acceptance, also when the operation has ended meanwhile, or a retry asks again: an ended
    one without its result would be taken for one that has none.
    """
    operation = state().store.operations.accept(
        session.id, kind, request, current_idempotency_key(), seconds_since_arrival(), timeout_seconds
    )
    ids = {"session_id": session.id, "operation_id": operation.id}
    mark(**ids)
    log.info("%s %s of session %s accepted", kind, operation.id, session.id, extra=ids)
    return operation.as_accepted


def awaited(
    session_id: str, operation_id: str, kind: OperationKind, seconds: float
) -> tuple[Operation, msgspec.Struct | None]:
    """The operation, held for as long until it has ended, and its result once COMPLETED."""
    operations = state().store.operations
    with held() as may_wait:
        operation = operations.wait(session_id, operation_id, kind, seconds if may_wait else 0.0)
    completed = operation.status is OperationStatus.COMPLETED
    return operation, operations.answer(operation, KINDS[kind].result) if completed else None
