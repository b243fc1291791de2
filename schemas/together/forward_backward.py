"""The forward-backward calls: a built-in loss, or the gradients of one that the caller has computed."""

from typing import Any

import numpy as np
from marshmallow import fields

from domain.forward_backward import (
    CrossEntropy,
    ForwardBackwardRequest,
    ForwardBackwardResult,
    Grpo,
    Loss,
    WeightedLogprobs,
)
from domain.limits import MOST_SAMPLES, Limits
from domain.model import ModelCard
from schemas.arrays import AnswerArray, FloatArray
from schemas.base import AnswerSchema, RequestSchema
from schemas.batch import check_batch, pack
from schemas.fields import BoundedList, Flag
from schemas.forward_backward import ForwardBackwardResultSchema as NativeResultSchema
from schemas.problems import refusal
from schemas.samples import TrainingSample
from schemas.tensors import DType, dtype_field
from schemas.together.losses import LossConfigSchema
from schemas.together.operations import OperationSchema
from schemas.together.payloads import apart_id, payload_id
from schemas.together.samples import SampleSchema

TARGETS = "loss_fn_inputs.target_tokens.data"
POLICY = {"logprobs": "generator_logprobs", "advantages": "advantages", "reference_logprobs": "reference_logprobs"}


def samples_field() -> BoundedList:
    nested = fields.Nested(SampleSchema)
    return BoundedList(nested, most=MOST_SAMPLES, required=True, description="The batch; lengths may differ.")


class ForwardBackwardBodySchema(RequestSchema):
    loss = fields.Nested(LossConfigSchema, required=True)
    samples = samples_field()
    forward_only = Flag(load_default=False, description="Only evaluate: no gradient is added.")
    payload_id = payload_id()
    return_loss_fn_outputs = Flag(load_default=False, description="Return the logprobs of every sample's targets.")


class GradientSchema(RequestSchema):
    data = FloatArray(required=True, description="d loss / d logprob, per token.", examples=[[0.0, -0.5, 0.25]])
    dtype = dtype_field(DType.FLOAT32, DType.BFLOAT16)


class CustomForwardBackwardBodySchema(RequestSchema):
    samples = samples_field()
    payload_id = payload_id()
    gradients = BoundedList(
        fields.Nested(GradientSchema), most=MOST_SAMPLES, required=True, description="One for each sample."
    )


class FloatsSchema(AnswerSchema):
    data = AnswerArray("number", description="One per token of the sample's input.", examples=[[0.0, -0.75]])
    dtype = fields.String(required=True, metadata={"enum": ["float32"]})
    shape = fields.List(fields.Integer(), required=True, metadata={"examples": [[2]]})


class LossFnOutputSchema(AnswerSchema):
    tensors = fields.Dict(
        keys=fields.String(),
        values=fields.Nested(FloatsSchema),
        required=True,
        metadata={"description": "logprobs: those of the targets, 0 where the weight is 0."},
    )


class ForwardBackwardResultSchema(NativeResultSchema):
    loss_fn_outputs = fields.List(fields.Nested(LossFnOutputSchema), metadata={"description": "If asked for."})
    payload_id = apart_id()


class ForwardBackwardOperationSchema(OperationSchema):
    output = fields.Nested(ForwardBackwardResultSchema, metadata={"description": "The result, once COMPLETED."})


class CustomForwardBackwardOperationSchema(OperationSchema):
    output = fields.Dict(metadata={"description": "Empty, once COMPLETED."})


def forward_backward_request(
    body: dict[str, Any], card: ModelCard, limits: Limits, horizon: int
) -> ForwardBackwardRequest:
    """Raises ValidationError for what the loss, the session's model or the server's limits refuse."""
    loss = body["loss"]
    samples = [_sample(sample, loss, f"samples[{index}]") for index, sample in enumerate(body.pop("samples"))]
    check_batch(samples, card, limits, TARGETS)
    flags = {"forward_only": body["forward_only"], "return_logprobs": body["return_loss_fn_outputs"]}
    return pack(samples, loss, horizon=horizon, **flags)


def custom_request(body: dict[str, Any], card: ModelCard, limits: Limits) -> ForwardBackwardRequest:
    """A loss whose gradient by the logprobs is the given one. Raises ValidationError."""
    samples, gradients = body.pop("samples"), body.pop("gradients")
    if len(samples) != len(gradients):
        raise refusal("gradients", f"has {len(gradients)} entries where there are {len(samples)} samples")
    batch = [_custom(*each, index) for index, each in enumerate(zip(samples, gradients, strict=True))]
    check_batch(batch, card, limits, TARGETS)
    return pack(batch, WeightedLogprobs())


def _custom(sample: dict[str, Any], gradient: dict[str, Any], index: int) -> TrainingSample:
    inputs, values = sample["loss_fn_inputs"], gradient["data"]
    if extra := inputs.keys() & POLICY.keys():
        raise refusal(f"samples[{index}].loss_fn_inputs.{min(extra)}", "does not belong to a loss of your own")
    if len(values) != len(inputs["target_tokens"]):
        raise refusal(
            f"gradients[{index}].data", f"has {len(values)} entries for {len(inputs['target_tokens'])} tokens"
        )
    kept = np.where(inputs["mask"] != 0, values, np.float32(0)) if "mask" in inputs else values
    return TrainingSample(
        model_input=sample["model_input"], target_tokens=inputs["target_tokens"], weights=kept, policy=None
    )


def _sample(sample: dict[str, Any], loss: Loss, path: str) -> TrainingSample:
    inputs = sample["loss_fn_inputs"]
    _check_names(inputs, loss, f"{path}.loss_fn_inputs")
    is_cross_entropy = isinstance(loss, CrossEntropy)
    weights = inputs.get("weights", inputs.get("mask"))
    if weights is not None and not is_cross_entropy:
        weights = (weights != 0).astype(np.float32)
    policy = None if is_cross_entropy else {ours: inputs[name] for name, ours in POLICY.items() if name in inputs}
    return TrainingSample(
        model_input=sample["model_input"], target_tokens=inputs["target_tokens"], weights=weights, policy=policy
    )


def _check_names(inputs: dict[str, np.ndarray], loss: Loss, path: str) -> None:
    needed, optional = {"logprobs", "advantages"}, {"weights", "mask"}
    if isinstance(loss, CrossEntropy):
        needed, optional = {"weights"}, set()
    elif isinstance(loss, Grpo):
        (needed if loss.beta > 0 else optional).add("reference_logprobs")
    for name in sorted(needed - inputs.keys()):
        raise refusal(f"{path}.{name}", "is required by this loss")
    for name in sorted(inputs.keys() - needed - optional - {"target_tokens"}):
        raise refusal(f"{path}.{name}", "does not belong to this loss")


def inline_view(result: ForwardBackwardResult) -> dict[str, Any]:
    """What stays in the answer when the result is fetched apart."""
    return {"loss": result.loss, "metrics": result.metrics}


def result_view(result: ForwardBackwardResult) -> dict[str, Any]:
    view = inline_view(result)
    if result.logprobs_T is None:
        return view
    assert result.offsets is not None
    parts = np.split(result.logprobs_T, result.offsets[1:-1])
    outputs = [{"tensors": {"logprobs": {"data": p, "dtype": "float32", "shape": [len(p)]}}} for p in parts]
    return {**view, "loss_fn_outputs": outputs}
