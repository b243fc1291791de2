"""What the routes of every kind of operation share: accepting one, and reading one under its kind."""

import logging
from typing import Any

import msgspec

from app.auth import own_session
from app.idempotency import current_once
from app.state import state
from app.waiting import APPLIED, held, preferred_wait
from contract.operation import OperationKind, OperationStatus
from contract.session import Session
from schemas.operations import operation_view

log = logging.getLogger(__name__)

FOLLOWED = {
    APPLIED: {"description": "The wait that was followed, where one was preferred.", "schema": {"type": "string"}}
}


def accept(session: Session, kind: OperationKind, request: msgspec.Struct) -> dict[str, Any]:
    """Accepts an operation of a session, which the caller has shown to be its own (see app/auth.py)."""
    operation = state().store.operations.accept(session.id, kind, request, current_once())
    log.info("%s %s of session %s accepted", kind, operation.id, session.id)
    return operation_view(operation)


def read(
    session_id: str, operation_id: str, kind: OperationKind, into: type[msgspec.Struct]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The operation, awaited as the caller prefers, with its result once COMPLETED."""
    own_session(session_id)
    seconds, followed = preferred_wait()
    operations = state().store.operations
    with held() as may_wait:
        operation = operations.wait(session_id, operation_id, kind, seconds if may_wait else 0.0)
    completed = operation.status is OperationStatus.COMPLETED
    result = operations.result(operation, into) if completed else None
    return operation_view(operation, result, operations.ahead(operation)), followed
