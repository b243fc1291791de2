"""The per-token arrays of a training sample: numbers with the name of their type."""

from enum import StrEnum
from typing import Any

import numpy as np
from marshmallow import ValidationError, post_load

from schemas.arrays import FloatArray, IntegerArray, narrowed, to_bfloat16
from schemas.base import RequestSchema
from schemas.bounds import INT64_MAX, Bounds
from schemas.fields import Choice, prefixed


class DType(StrEnum):
    UNSPECIFIED = "UNSPECIFIED"
    INT64 = "INT64"
    FLOAT32 = "FLOAT32"
    BFLOAT16 = "BFLOAT16"


DTYPES = prefixed(DType, "D_TYPE_")


def dtype_field(*others: DType) -> Choice:
    """A dtype among `others`; absent or UNSPECIFIED, it is inferred."""
    choices = {name: dtype for name, dtype in DTYPES.items() if dtype in (DType.UNSPECIFIED, *others)}
    return Choice(
        choices, load_default=DType.UNSPECIFIED, description="Type of the numbers; inferred when unspecified."
    )


class TargetTokensSchema(RequestSchema):
    data = IntegerArray(
        Bounds(0, INT64_MAX),
        required=True,
        description="The token that entry i should predict. As long as the input.",
        examples=[[2365, 28, 216]],
    )
    dtype = dtype_field(DType.INT64)

    @post_load
    def make(self, tensor: dict[str, Any], **_: Any) -> np.ndarray:
        return narrowed(tensor["data"])


class LossMaskSchema(RequestSchema):
    data = IntegerArray(
        Bounds(0, 1),
        required=True,
        description="1 trains an entry; 0 excludes it, whatever the other arrays hold there. As long as the input.",
        examples=[[0, 0, 1]],
    )
    dtype = dtype_field(DType.INT64)

    @post_load
    def make(self, tensor: dict[str, Any], **_: Any) -> np.ndarray:
        return tensor["data"].astype(np.float32)


class FloatTensorSchema(RequestSchema):
    """BFLOAT16 numbers are rounded to the nearest bfloat16, ties to even."""

    @post_load
    def make(self, tensor: dict[str, Any], **_: Any) -> np.ndarray:
        values_T: np.ndarray = tensor["data"]
        if tensor["dtype"] is not DType.BFLOAT16:
            return values_T
        rounded_T = to_bfloat16(values_T)
        finite_T = np.isfinite(rounded_T)
        if not finite_T.all():
            raise ValidationError({"data": {int(finite_T.argmin()): ["must fit bfloat16"]}})
        return rounded_T


class AdvantagesSchema(FloatTensorSchema):
    data = FloatArray(
        required=True, description="Advantage per entry. As long as the input.", examples=[[0.0, 0.5, 0.5]]
    )
    dtype = dtype_field(DType.FLOAT32, DType.BFLOAT16)


class LogprobsSchema(FloatTensorSchema):
    data = FloatArray(
        required=True,
        description="Natural logarithm of a probability, per entry. As long as the input.",
        examples=[[0.0, -1.25, -0.75]],
    )
    dtype = dtype_field(DType.FLOAT32, DType.BFLOAT16)
