"""Operations: asked for with a verb on the session, read under their kind, listed, cancelled."""

from typing import Any

from app.auth import own_session
from app.blueprint import Blueprint
from app.operations import FOLLOWED, accept, read
from app.routes.sessions import PREFIX
from app.state import state
from domain.forward_backward import ForwardBackwardResult
from domain.operation import OperationKind
from domain.optim_step import OptimStepResult
from domain.sample import SampleResult
from domain.session import Dialect
from schemas import examples
from schemas.forward_backward import ForwardBackwardBodySchema, ForwardBackwardOperationSchema, forward_backward_request
from schemas.operations import OperationSummarySchema, summary_view
from schemas.optim_step import OptimStepBodySchema, OptimStepOperationSchema, optim_step_request
from schemas.pages import EmptySchema, PageSchema
from schemas.sampling import SampleBodySchema, SampleOperationSchema, sample_request

operations = Blueprint("operations", __name__, url_prefix=PREFIX, description="What a session is asked to do.")


@operations.route("/<id:session_id>:sample", methods=("POST",))
@operations.arguments(SampleBodySchema, example=examples.SAMPLE)
@operations.response(200, SampleOperationSchema, example=examples.ACCEPTED)
def sample(body: dict[str, Any], session_id: str) -> dict[str, Any]:
    """Sample completions of a prompt"""
    session = own_session(session_id, Dialect.NATIVE)
    request = sample_request(body, session.spec.base_model, state().settings.limits)
    return accept(session, OperationKind.SAMPLE, request, body.get("timeout_seconds"))


@operations.route("/<id:session_id>:forward-backward", methods=("POST",))
@operations.arguments(ForwardBackwardBodySchema, example=examples.FORWARD_BACKWARD)
@operations.response(200, ForwardBackwardOperationSchema, example=examples.ACCEPTED)
def forward_backward(body: dict[str, Any], session_id: str) -> dict[str, Any]:
    """Add a loss's gradient to the session's

    Aggregation is per call; the gradients of successive calls add until an optim-step uses them.
    """
    session, settings = own_session(session_id, Dialect.NATIVE), state().settings
    request = forward_backward_request(body, session.spec.base_model, settings.limits, settings.horizon)
    return accept(session, OperationKind.FORWARD_BACKWARD, request, body.get("timeout_seconds"))


@operations.route("/<id:session_id>:optim-step", methods=("POST",))
@operations.arguments(OptimStepBodySchema, example=examples.OPTIM_STEP)
@operations.response(200, OptimStepOperationSchema, example=examples.ACCEPTED)
def optim_step(body: dict[str, Any], session_id: str) -> dict[str, Any]:
    """Step the adapter's weights along the accumulated gradient, which is cleared"""
    session, request = own_session(session_id, Dialect.NATIVE), optim_step_request(body)
    return accept(session, OperationKind.OPTIM_STEP, request, body.get("timeout_seconds"))


@operations.route("/<id:session_id>/operations/sample/<id:operation_id>")
@operations.doc(parameters=["Prefer"])
@operations.response(200, SampleOperationSchema, headers=FOLLOWED, example=examples.SAMPLED)
def get_sample(session_id: str, operation_id: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Read a sample operation"""
    return read(session_id, operation_id, OperationKind.SAMPLE, SampleResult)


@operations.route("/<id:session_id>/operations/forward-backward/<id:operation_id>")
@operations.doc(parameters=["Prefer"])
@operations.response(200, ForwardBackwardOperationSchema, headers=FOLLOWED)
def get_forward_backward(session_id: str, operation_id: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Read a forward-backward operation"""
    return read(session_id, operation_id, OperationKind.FORWARD_BACKWARD, ForwardBackwardResult)


@operations.route("/<id:session_id>/operations/optim-step/<id:operation_id>")
@operations.doc(parameters=["Prefer"])
@operations.response(200, OptimStepOperationSchema, headers=FOLLOWED)
def get_optim_step(session_id: str, operation_id: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Read an optim-step operation"""
    return read(session_id, operation_id, OperationKind.OPTIM_STEP, OptimStepResult)


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
