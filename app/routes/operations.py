"""Operations: asked for with a verb on the session, read under their kind, listed, cancelled."""

from typing import Any

from app.auth import own_session
from app.blueprint import Blueprint, named
from app.operations import accepted, awaited, context_of
from app.routes.sessions import PREFIX
from app.state import state
from app.waiting import APPLIED, preferred_wait
from domain.operation import OperationKind
from domain.session import Dialect
from schemas import examples
from schemas.calls import Call
from schemas.native import NATIVE
from schemas.operation_list import OperationSummarySchema, summary_view
from schemas.operations import operation_view
from schemas.pages import EmptySchema, PageSchema
from schemas.time_limit import check_timeout

FOLLOWED = {
    APPLIED: {"description": "The wait that was followed, where one was preferred.", "schema": {"type": "string"}}
}

operations = Blueprint("operations", __name__, url_prefix=PREFIX, description="What a session is asked to do.")


def offer(kind: OperationKind, call: Call) -> None:
    """Adds the two routes of a kind: to ask for an operation, and to read it."""

    @operations.route(f"/<id:session_id>:{kind}", methods=("POST",))
    @operations.arguments(call.body, required=not issubclass(call.body, EmptySchema), example=call.example)
    @operations.response(200, call.operation, example=examples.ACCEPTED)
    @named(call.name or kind.task_name, call.summary, call.notes)
    def ask(body: dict[str, Any], session_id: str) -> dict[str, Any]:
        session, seconds = own_session(session_id, Dialect.NATIVE), body.get("timeout_seconds")
        request = call.request(body, context_of(session))
        check_timeout(seconds, kind, state().settings.time_limits)
        return operation_view(accepted(session, kind, request, seconds))

    @operations.route(f"/<id:session_id>/operations/{kind}/<id:operation_id>")
    @operations.doc(parameters=["Prefer"])
    @operations.response(200, call.operation, headers=FOLLOWED, example=call.result_example)
    @named(f"get_{kind.task_name}", f"Read one {kind} operation", call.read_notes)
    def read(session_id: str, operation_id: str) -> tuple[dict[str, Any], dict[str, str]]:
        own_session(session_id, Dialect.NATIVE)
        seconds, followed = preferred_wait(state().settings.default_wait)
        operation, result = awaited(session_id, operation_id, kind, seconds)
        output = None if result is None else call.output(operation, result)
        return operation_view(operation, output, state().store.operations.ahead(operation)), followed


for each in NATIVE.items():
    offer(*each)


@operations.route("/<id:session_id>/operations")
@operations.arguments(PageSchema, location="query")
@operations.response(200, OperationSummarySchema(many=True))
def list_operations(query: dict[str, Any], session_id: str) -> list[dict[str, Any]]:
    """List a session's operations with their times, newest first"""
    own_session(session_id, Dialect.NATIVE)
    return [summary_view(operation) for operation in state().store.operations.list(session_id, **query)]


@operations.route("/<id:session_id>/operations/<id:operation_id>:cancel", methods=("POST",))
@operations.arguments(EmptySchema, required=False)
@operations.response(200, OperationSummarySchema)
def cancel_operation(_: dict[str, Any], session_id: str, operation_id: str) -> dict[str, Any]:
    """Cancel an operation that has not started

    Cancelling again changes nothing.
    """
    own_session(session_id, Dialect.NATIVE)
    return summary_view(state().store.operations.cancel(session_id, operation_id))
