"""What the routes of every kind of operation share: accepting one, and reading one under its kind."""

from typing import Any

import msgspec

from app.idempotency import current_once
from app.state import state
from app.waiting import APPLIED, preferred_wait
from contract.operation import OperationKind, OperationStatus
from schemas.operations import operation_view

FOLLOWED = {
    APPLIED: {"description": "The wait that was followed, where one was preferred.", "schema": {"type": "string"}}
}


def accept(session_id: str, kind: OperationKind, request: msgspec.Struct) -> dict[str, Any]:
    return operation_view(state().store.operations.accept(session_id, kind, request, current_once()))


def read(
    session_id: str, operation_id: str, kind: OperationKind, into: type[msgspec.Struct]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The operation, awaited as the caller prefers, with its result once COMPLETED."""
    seconds, followed = preferred_wait()
    operations = state().store.operations
    operation = operations.wait(session_id, operation_id, kind, seconds)
    completed = operation.status is OperationStatus.COMPLETED
    result = operations.result(operation, into) if completed else None
    return operation_view(operation, result, operations.ahead(operation)), followed
