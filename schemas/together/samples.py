"""A training sample: the model's input, and the loss's inputs as tensors by name."""

from typing import Any

import numpy as np
from marshmallow import ValidationError, fields, post_load

from schemas.arrays import FloatArray, IntegerArray, narrowed
from schemas.base import RequestSchema
from schemas.bounds import INT64_MAX, Bounds
from schemas.fields import Choice
from schemas.model_input import ModelInputSchema
from schemas.samples import check_lengths
from schemas.tensors import DType

INT64 = {"int64": DType.INT64}
FLOAT32 = {"float32": DType.FLOAT32}
SHAPE = "Absent, or the tensor's one length."


class TensorSchema(RequestSchema):
    """One dimension, dense."""

    shape = IntegerArray(Bounds(0, INT64_MAX), description=SHAPE, examples=[[3]])

    @post_load
    def make(self, tensor: dict[str, Any], **_: Any) -> np.ndarray:
        array: np.ndarray = tensor["data"]
        if array.dtype == np.int64:
            array = narrowed(array)
        if "shape" in tensor and tensor["shape"].tolist() != [len(array)]:
            raise ValidationError({"shape": ["must be the length of data alone"]})
        return array


class TokensTensorSchema(TensorSchema):
    data = IntegerArray(Bounds(0, INT64_MAX), required=True, description="Token ids.", examples=[[504, 2365, 28]])
    dtype = Choice(INT64, required=True, description="The type of the numbers.")


class FloatsTensorSchema(TensorSchema):
    data = FloatArray(required=True, description="Finite numbers.", examples=[[0.0, 0.5, -1.25]])
    dtype = Choice(FLOAT32, required=True, description="The type of the numbers.")


class WeightsTensorSchema(TensorSchema):
    data = FloatArray(required=True, description="Finite numbers.", examples=[[0.0, 1.0, 1.0]])
    dtype = Choice({**INT64, **FLOAT32}, required=True, description="The type of the numbers.")


class LossFnInputsSchema(RequestSchema):
    """All as long as the model's input: entry i belongs to predicting target_tokens[i] from the input up to and
    including i."""

    target_tokens = fields.Nested(TokensTensorSchema, required=True)
    weights = fields.Nested(
        WeightsTensorSchema,
        metadata={"description": "Fractions count in cross-entropy; elsewhere what is not 0 is 1."},
    )
    mask = fields.Nested(WeightsTensorSchema, metadata={"description": "In place of weights."})
    logprobs = fields.Nested(FloatsTensorSchema, metadata={"description": "Those of the policy that sampled."})
    advantages = fields.Nested(FloatsTensorSchema)
    reference_logprobs = fields.Nested(FloatsTensorSchema, metadata={"description": "Of GRPO with beta above 0."})


class SampleSchema(RequestSchema):
    model_input = fields.Nested(ModelInputSchema, required=True)
    loss_fn_inputs = fields.Nested(LossFnInputsSchema, required=True)
    routed_experts_key = fields.String(metadata={"description": "Refused: the models here have no routed experts."})

    @post_load
    def check(self, sample: dict[str, Any], **_: Any) -> dict[str, Any]:
        if "routed_experts_key" in sample:
            raise ValidationError({"routed_experts_key": ["must be absent: this model has no routed experts"]})
        inputs = sample["loss_fn_inputs"]
        if "weights" in inputs and "mask" in inputs:
            raise ValidationError({"loss_fn_inputs": ["must have weights or mask, not both"]})
        check_lengths(inputs, len(sample["model_input"]), "loss_fn_inputs")
        return sample
