"""What a session is asked to do: train, step, publish, sample, save."""

from typing import Any

from msgspec.structs import replace

from app.auth import own_session
from app.blueprint import named
from app.operations import accepted, awaited, context_of
from app.state import state
from app.together.blueprint import SESSIONS, Blueprint, apart
from app.waiting import preferred_wait
from domain.operation import Operation, OperationKind, OperationStatus
from domain.session import Dialect
from domain.weights_sync import WeightsSyncRequest
from schemas.calls import Call
from schemas.pages import EmptySchema
from schemas.together.calls import TOGETHER
from schemas.together.operations import operation_view
from store.errors import NotFoundError

operations = Blueprint(
    "together_operations", __name__, url_prefix=f"{SESSIONS}/<id:session_id>/operations", description="Operations."
)


def offer(kind: OperationKind, call: Call) -> None:
    """Adds the two routes of a kind: to ask for an operation, and to read it."""

    @operations.route(f"/{kind}", methods=("POST",))
    @operations.arguments(call.body, required=not issubclass(call.body, EmptySchema))
    @operations.response(200, call.operation)
    @named(call.name or kind.task_name, call.summary, call.notes)
    def ask(body: dict[str, Any], session_id: str) -> Any:
        session = own_session(session_id, Dialect.TOGETHER)
        operation = accepted(session, kind, call.request(body, context_of(session)))
        return _queued(operation) or operation_view(operation)

    @operations.route(f"/{kind}/<id:operation_id>")
    @operations.doc(parameters=["Prefer"])
    @operations.response(200, call.operation)
    @named(f"get_{kind.task_name}", f"Read one {kind} operation", call.read_notes)
    def read(session_id: str, operation_id: str) -> Any:
        own_session(session_id, Dialect.TOGETHER)
        if queued := _queued_by_id(session_id, operation_id, kind):
            return queued
        # Held as long as a client that only polls should wait, or as it prefers.
        seconds, _ = preferred_wait(state().settings.polling_wait)
        operation, result = awaited(session_id, operation_id, kind, seconds)
        return operation_view(operation, None if result is None else _output(operation, result, call))


for each in TOGETHER.items():
    offer(*each)


def _output(operation: Operation, result: Any, call: Call) -> dict[str, Any]:
    output: dict[str, Any] = call.output(operation, result)
    if call.inline is None:
        return output
    return apart(operation, call.operation().fields["output"].schema, output, call.inline(result))  # type: ignore[attr-defined]


def _queued_by_id(session_id: str, operation_id: str, kind: OperationKind) -> dict[str, Any] | None:
    if kind is not OperationKind.WEIGHTS_SYNC:
        return None
    return _queued(state().store.operations.get(session_id, operation_id, kind))


def _queued(operation: Operation) -> dict[str, Any] | None:
    """A weights-sync in the background that is still to come: to be queued is all that its client waits for."""
    if operation.kind is not OperationKind.WEIGHTS_SYNC:
        return None
    operations = state().store.operations
    step = operations.steps_to_publish(operation.session_id).get(operation.id)
    try:
        if step is None or not operations.request(operation, WeightsSyncRequest).in_background:
            return None
    except NotFoundError:  # it has ended since
        return None
    queued = replace(operation, status=OperationStatus.COMPLETED)
    return operation_view(queued, {"weights_version": step})
