"""The kinds of operation that the API of Together's SDK offers."""

from domain.checkpoint import CheckpointRequest
from domain.operation import OperationKind
from domain.weights_sync import WeightsSyncRequest
from schemas.calls import Call
from schemas.pages import EmptySchema
from schemas.together import checkpoints, forward_backward, optim_step, sampling
from schemas.together.operations import WeightsSyncBodySchema, WeightsSyncOperationSchema

TOGETHER: dict[OperationKind, Call] = {
    OperationKind.FORWARD_BACKWARD: Call(
        summary="Add a loss's gradient to the session's, or only evaluate the loss",
        body=forward_backward.ForwardBackwardBodySchema,
        operation=forward_backward.ForwardBackwardOperationSchema,
        request=lambda body, context: forward_backward.forward_backward_request(
            body, context.spec.base_model, context.limits, context.horizon
        ),
        output=lambda _, result: forward_backward.result_view(result),
        inline=forward_backward.inline_view,
    ),
    OperationKind.CUSTOM_FORWARD_BACKWARD: Call(
        summary="Add the gradient of a loss of your own, given by the logprobs",
        body=forward_backward.CustomForwardBackwardBodySchema,
        operation=forward_backward.CustomForwardBackwardOperationSchema,
        request=lambda body, context: forward_backward.custom_request(body, context.spec.base_model, context.limits),
        output=lambda *_: {},
    ),
    OperationKind.OPTIM_STEP: Call(
        summary="Step the adapter's weights along the accumulated gradient, which is cleared",
        body=optim_step.OptimStepBodySchema,
        operation=optim_step.OptimStepOperationSchema,
        request=lambda body, context: optim_step.optim_step_request(body, context.spec.muon),
        output=lambda _, result: {"step": result.step},
    ),
    OperationKind.WEIGHTS_SYNC: Call(
        summary="Let samples use the weights as they are",
        notes="Samples that were accepted before keep the weights that they would have had.",
        read_notes="One in the background is COMPLETED while it waits; the session's policy_state says whether it has "
        "been published.",
        body=WeightsSyncBodySchema,
        operation=WeightsSyncOperationSchema,
        request=lambda body, _: WeightsSyncRequest(**body),
        output=lambda _, result: {"weights_version": result.step},
    ),
    OperationKind.SAMPLE: Call(
        summary="Sample completions of prompts with the published weights",
        body=sampling.SampleBodySchema,
        operation=sampling.SampleOperationSchema,
        request=lambda body, context: sampling.sample_request(
            body, context.spec.base_model, context.limits, context.spec.has_generator
        ),
        output=lambda _, result: sampling.result_view(result),
        inline=lambda _: {"results": []},
    ),
    OperationKind.TRAINING_CHECKPOINT: Call(
        name="create_training_checkpoint",
        summary="Save adapter, optimizer state and step, for training to go on from",
        body=EmptySchema,
        operation=checkpoints.TrainingCheckpointOperationSchema,
        request=lambda *_: CheckpointRequest(),
        output=checkpoints.result_view,
    ),
    OperationKind.INFERENCE_CHECKPOINT: Call(
        name="create_inference_checkpoint",
        summary="Save the adapter, alone and merged into its base model, for other software to load",
        body=EmptySchema,
        operation=checkpoints.InferenceCheckpointOperationSchema,
        request=lambda *_: CheckpointRequest(),
        output=checkpoints.result_view,
    ),
}
