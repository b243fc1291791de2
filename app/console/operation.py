"""One operation: what it was asked, what it gave; cancelled here while it waits."""

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
from domain.checkpoint import Checkpoint
from domain.forward_backward import ForwardBackwardRequest, ForwardBackwardResult
from domain.operation import Operation, OperationKind, OperationStatus
from domain.optim_step import OptimStepRequest, OptimStepResult
from domain.sample import SampleRequest, SampleResult
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
    match found.kind:
        case OperationKind.SAMPLE:
            return sample_page(session, _request(found, SampleRequest), _result(found, SampleResult))
        case OperationKind.FORWARD_BACKWARD | OperationKind.CUSTOM_FORWARD_BACKWARD:
            request = _request(found, ForwardBackwardRequest)
            return training_page(session, request, _result(found, ForwardBackwardResult))
        case OperationKind.OPTIM_STEP:
            asked, result = _request(found, OptimStepRequest), _result(found, OptimStepResult)
            return {"asked": asked and msgspec.structs.asdict(asked), "metrics": result and result.metrics}
        case OperationKind.TRAINING_CHECKPOINT | OperationKind.INFERENCE_CHECKPOINT:
            return {"checkpoint": _result(found, Checkpoint)}
    return {}


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
