"""One operation: what it was asked, what it gave; cancelled here while it waits."""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from flask import redirect, render_template, url_for
from werkzeug.wrappers import Response

from app.auth import own_session
from app.console.blueprint import console
from app.console.sample import sample_page
from app.console.session import SESSION
from app.console.training import training_page
from app.state import state
from domain.checkpoint import Checkpoint, CheckpointRequest
from domain.forward_backward import ForwardBackwardRequest
from domain.kinds import KINDS
from domain.operation import Operation, OperationStatus
from domain.optim_step import OptimStepRequest, OptimStepResult
from domain.sample import SampleRequest
from domain.session import Session
from store.errors import NotFoundError

OPERATION = f"{SESSION}/operations/<id:operation_id>"

T = TypeVar("T", bound=msgspec.Struct)


@console.get(OPERATION)
def operation(session_id: str, operation_id: str) -> str:
    session = own_session(session_id)
    found = state().store.operations.get(session_id, operation_id)
    return render_template(
        "console/operation.html",
        session=session,
        operation=found,
        is_pending=found.status is OperationStatus.PENDING,
        is_live=not found.status.is_ended,
        ahead=state().store.operations.ahead(found),
        **_details(session, found),
    )


def _details(session: Session, found: Operation) -> dict[str, Any]:
    """What the page of the operation's kind shows."""
    facts = KINDS[found.kind]
    page = PAGES.get(facts.request)
    return page(session, _request(found, facts.request), _result(found, facts.result)) if page else {}


def _optim_step_page(_: Session, request: OptimStepRequest | None, result: OptimStepResult | None) -> dict[str, Any]:
    return {"asked": request and msgspec.structs.asdict(request), "metrics": result and result.metrics}


def _checkpoint_page(_: Session, __: CheckpointRequest | None, result: Checkpoint | None) -> dict[str, Any]:
    return {"checkpoint": result}


PAGES: dict[type[msgspec.Struct], Callable[[Session, Any, Any], dict[str, Any]]] = {
    SampleRequest: sample_page,
    ForwardBackwardRequest: training_page,
    OptimStepRequest: _optim_step_page,
    CheckpointRequest: _checkpoint_page,
}
"""By the request of a kind. Each takes the session, the request and the result, None where one is missing."""


def _request(found: Operation, into: type[T]) -> T | None:
    """None when it is no longer kept."""
    try:
        return state().store.operations.request(found, into)
    except NotFoundError:
        return None


def _result(found: Operation, into: type[T]) -> T | None:
    """None when there is none, or none any more."""
    if found.status is not OperationStatus.COMPLETED:
        return None
    try:
        return state().store.operations.result(found, into)
    except NotFoundError:
        return None


@console.get(f"{OPERATION}/cancel")
def ask_to_cancel(session_id: str, operation_id: str) -> str:
    own_session(session_id)
    state().store.operations.get(session_id, operation_id)
    return render_template(
        "console/confirm.html",
        question="Cancel this operation?",
        meaning="It ends as failed, and those behind it go on. One that has begun cannot be cancelled.",
        verb="Cancel the operation",
        action=url_for("console.cancel", session_id=session_id, operation_id=operation_id),
        back=url_for("console.operation", session_id=session_id, operation_id=operation_id),
    )


@console.post(f"{OPERATION}/cancel")
def cancel(session_id: str, operation_id: str) -> Response:
    own_session(session_id)
    state().store.operations.cancel(session_id, operation_id)
    return redirect(url_for("console.operation", session_id=session_id, operation_id=operation_id))
