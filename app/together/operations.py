"""What a session is asked to do: train, step, publish, sample."""

from typing import Any

from msgspec.structs import replace

from app.auth import own_session
from app.operations import accepted
from app.state import state
from app.together.blueprint import SESSIONS, Blueprint, apart, read
from domain.forward_backward import ForwardBackwardResult
from domain.operation import Operation, OperationKind, OperationStatus
from domain.optim_step import OptimStepResult
from domain.sample import SampleResult
from domain.session import Dialect
from domain.weights_sync import WeightsSyncRequest, WeightsSyncResult
from schemas.together import forward_backward as training
from schemas.together import sampling
from schemas.together.operations import WeightsSyncBodySchema, WeightsSyncOperationSchema, operation_view
from schemas.together.optim_step import OptimStepBodySchema, OptimStepOperationSchema, optim_step_request
from store.errors import NotFoundError

KIND = OperationKind

operations = Blueprint(
    "together_operations", __name__, url_prefix=f"{SESSIONS}/<id:session_id>/operations", description="Operations."
)


@operations.route("/forward-backward", methods=("POST",))
@operations.arguments(training.ForwardBackwardBodySchema)
@operations.response(200, training.ForwardBackwardOperationSchema)
def forward_backward(body: dict[str, Any], session_id: str) -> Any:
    """Add a loss's gradient to the session's, or only evaluate the loss"""
    session, settings = own_session(session_id, Dialect.TOGETHER), state().settings
    request = training.forward_backward_request(body, session.spec.base_model, settings.limits, settings.horizon)
    return operation_view(accepted(session, KIND.FORWARD_BACKWARD, request))


@operations.route("/forward-backward/<id:operation_id>")
@operations.doc(parameters=["Prefer"])
@operations.response(200, training.ForwardBackwardOperationSchema)
def get_forward_backward(session_id: str, operation_id: str) -> Any:
    """Read a forward-backward operation"""
    operation, result = read(session_id, operation_id, KIND.FORWARD_BACKWARD, ForwardBackwardResult)
    if result is None:
        return operation_view(operation)
    schema, inline = training.ForwardBackwardResultSchema(), training.inline_view(result)
    return operation_view(operation, apart(operation, schema, training.result_view(result), inline))


@operations.route("/custom-forward-backward", methods=("POST",))
@operations.arguments(training.CustomForwardBackwardBodySchema)
@operations.response(200, training.CustomForwardBackwardOperationSchema)
def custom_forward_backward(body: dict[str, Any], session_id: str) -> Any:
    """Add the gradient of a loss of your own, given by the logprobs"""
    session, limits = own_session(session_id, Dialect.TOGETHER), state().settings.limits
    request = training.custom_request(body, session.spec.base_model, limits)
    return operation_view(accepted(session, KIND.CUSTOM_FORWARD_BACKWARD, request))


@operations.route("/custom-forward-backward/<id:operation_id>")
@operations.doc(parameters=["Prefer"])
@operations.response(200, training.CustomForwardBackwardOperationSchema)
def get_custom_forward_backward(session_id: str, operation_id: str) -> Any:
    """Read a custom-forward-backward operation"""
    operation, result = read(session_id, operation_id, KIND.CUSTOM_FORWARD_BACKWARD, ForwardBackwardResult)
    return operation_view(operation, {} if result else None)


@operations.route("/optim-step", methods=("POST",))
@operations.arguments(OptimStepBodySchema)
@operations.response(200, OptimStepOperationSchema)
def optim_step(body: dict[str, Any], session_id: str) -> Any:
    """Step the adapter's weights along the accumulated gradient, which is cleared"""
    session = own_session(session_id, Dialect.TOGETHER)
    return operation_view(accepted(session, KIND.OPTIM_STEP, optim_step_request(body, session.spec.muon)))


@operations.route("/optim-step/<id:operation_id>")
@operations.doc(parameters=["Prefer"])
@operations.response(200, OptimStepOperationSchema)
def get_optim_step(session_id: str, operation_id: str) -> Any:
    """Read an optim-step operation"""
    operation, result = read(session_id, operation_id, KIND.OPTIM_STEP, OptimStepResult)
    return operation_view(operation, {"step": result.step} if result else None)


@operations.route("/weights-sync", methods=("POST",))
@operations.arguments(WeightsSyncBodySchema)
@operations.response(200, WeightsSyncOperationSchema)
def weights_sync(body: dict[str, Any], session_id: str) -> Any:
    """Let samples use the weights as they are

    Samples that were accepted before keep the weights that they would have had.
    """
    operation = accepted(own_session(session_id, Dialect.TOGETHER), KIND.WEIGHTS_SYNC, WeightsSyncRequest(**body))
    return _queued(operation) or operation_view(operation)


@operations.route("/weights-sync/<id:operation_id>")
@operations.doc(parameters=["Prefer"])
@operations.response(200, WeightsSyncOperationSchema)
def get_weights_sync(session_id: str, operation_id: str) -> Any:
    """Read a weights-sync operation

    One in the background is COMPLETED while it waits; the session's policy_state says whether it has been published.
    """
    own_session(session_id, Dialect.TOGETHER)
    if queued := _queued(state().store.operations.get(session_id, operation_id, KIND.WEIGHTS_SYNC)):
        return queued
    operation, result = read(session_id, operation_id, KIND.WEIGHTS_SYNC, WeightsSyncResult)
    return operation_view(operation, {"weights_version": result.step} if result else None)


@operations.route("/sample", methods=("POST",))
@operations.arguments(sampling.SampleBodySchema)
@operations.response(200, sampling.SampleOperationSchema)
def sample(body: dict[str, Any], session_id: str) -> Any:
    """Sample completions of prompts with the published weights"""
    session = own_session(session_id, Dialect.TOGETHER)
    spec, limits = session.spec, state().settings.limits
    request = sampling.sample_request(body, spec.base_model, limits, spec.has_generator)
    return operation_view(accepted(session, KIND.SAMPLE, request))


@operations.route("/sample/<id:operation_id>")
@operations.doc(parameters=["Prefer"])
@operations.response(200, sampling.SampleOperationSchema)
def get_sample(session_id: str, operation_id: str) -> Any:
    """Read a sample operation"""
    operation, result = read(session_id, operation_id, KIND.SAMPLE, SampleResult)
    if result is None:
        return operation_view(operation)
    schema = sampling.SampleResultSchema()
    return operation_view(operation, apart(operation, schema, sampling.result_view(result), {"results": []}))


def _queued(operation: Operation) -> dict[str, Any] | None:
    """A weights-sync in the background that is still to come: to be queued is all that its client waits for."""
    operations = state().store.operations
    step = operations.steps_to_publish(operation.session_id).get(operation.id)
    try:
        if step is None or not operations.request(operation, WeightsSyncRequest).in_background:
            return None
    except NotFoundError:  # it has ended since
        return None
    queued = replace(operation, status=OperationStatus.COMPLETED)
    return operation_view(queued, {"weights_version": step})
