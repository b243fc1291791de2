"""The kinds of operation that the native API, /v1, offers."""

from domain.checkpoint import CheckpointRequest
from domain.operation import OperationKind
from schemas import examples
from schemas.calls import Call
from schemas.checkpoints import InferenceCheckpointOperationSchema, SaveSchema, TrainingCheckpointOperationSchema
from schemas.forward_backward import ForwardBackwardBodySchema, ForwardBackwardOperationSchema, forward_backward_request
from schemas.optim_step import OptimStepBodySchema, OptimStepOperationSchema, optim_step_request
from schemas.sampling import SampleBodySchema, SampleOperationSchema, sample_request

NATIVE: dict[OperationKind, Call] = {
    OperationKind.SAMPLE: Call(
        summary="Sample completions of a prompt",
        body=SampleBodySchema,
        operation=SampleOperationSchema,
        request=lambda body, context: sample_request(body, context.spec.base_model, context.limits),
        example=examples.SAMPLE,
        result_example=examples.SAMPLED,
    ),
    OperationKind.FORWARD_BACKWARD: Call(
        summary="Add a loss's gradient to the session's",
        notes="Aggregation is per call; the gradients of successive calls add until an optim-step uses them.",
        body=ForwardBackwardBodySchema,
        operation=ForwardBackwardOperationSchema,
        request=lambda body, context: forward_backward_request(
            body, context.spec.base_model, context.limits, context.horizon
        ),
        example=examples.FORWARD_BACKWARD,
    ),
    OperationKind.OPTIM_STEP: Call(
        summary="Step the adapter's weights along the accumulated gradient, which is cleared",
        body=OptimStepBodySchema,
        operation=OptimStepOperationSchema,
        request=lambda body, _: optim_step_request(body),
        example=examples.OPTIM_STEP,
    ),
    OperationKind.TRAINING_CHECKPOINT: Call(
        name="create_training_checkpoint",
        summary="Save adapter, optimizer state and step, for training to go on from",
        notes="Gradients that no optim-step has used are not part of it.",
        body=SaveSchema,
        operation=TrainingCheckpointOperationSchema,
        request=lambda *_: CheckpointRequest(),
        result_example=examples.TRAINING_CHECKPOINT_SAVED,
    ),
    OperationKind.INFERENCE_CHECKPOINT: Call(
        name="create_inference_checkpoint",
        summary="Save the adapter, alone and merged into its base model, for other software to load",
        body=SaveSchema,
        operation=InferenceCheckpointOperationSchema,
        request=lambda *_: CheckpointRequest(),
        result_example=examples.INFERENCE_CHECKPOINT_SAVED,
    ),
}
