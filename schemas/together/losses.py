"""Which loss. Its parameters where they differ from ours: the ratio's bounds are absolute, cross-entropy is a sum."""

from typing import Any

from marshmallow import fields, post_load

from domain.forward_backward import Aggregation, Cispo, CrossEntropy, Grpo, Ppo, RatioType
from schemas.base import RequestSchema
from schemas.bounds import FLOAT32_MAX, Bounds
from schemas.fields import Choice, Number
from schemas.losses import AGGREGATIONS, NOT_BELOW_0, RATIO_TYPES, UP_TO_1, beta_of_grpo
from schemas.losses import LossConfigSchema as NativeLossConfigSchema

FROM_1 = Bounds(1.0, FLOAT32_MAX)


def lower_bound(bounds: Bounds, default: float) -> Number:
    return Number(bounds, load_default=default, description="The ratio's lower bound.")


def upper_bound(bounds: Bounds, default: float) -> Number:
    return Number(bounds, load_default=default, description="The ratio's upper bound.")


def ratio_bounds(params: dict[str, Any]) -> dict[str, Any]:
    """The bounds under the names of domain/, which leave `params`."""
    return {"ratio_low": params.pop("clip_low_threshold"), "ratio_high": params.pop("clip_high_threshold")}


class CrossEntropyParamsSchema(RequestSchema):
    """Cross-entropy has no parameters."""

    @post_load
    def make(self, _: dict[str, Any], **__: Any) -> CrossEntropy:
        return CrossEntropy(aggregation=Aggregation.SUM)


class GrpoParamsSchema(RequestSchema):
    clip_low_threshold = lower_bound(UP_TO_1, Grpo().ratio_low)
    clip_high_threshold = upper_bound(FROM_1, Grpo().ratio_high)
    beta = beta_of_grpo()
    agg_type = Choice(
        AGGREGATIONS, load_default=Aggregation.FIXED_HORIZON, description="How per-token losses become the call's."
    )
    ratio_type = Choice(
        RATIO_TYPES, load_default=RatioType.TOKEN, description="Whether each token has a ratio of its own."
    )

    @post_load
    def make(self, params: dict[str, Any], **_: Any) -> Grpo:
        return Grpo(**ratio_bounds(params), aggregation=params.pop("agg_type"), **params)


class PpoParamsSchema(RequestSchema):
    clip_low_threshold = lower_bound(UP_TO_1, Ppo().ratio_low)
    clip_high_threshold = upper_bound(FROM_1, Ppo().ratio_high)

    @post_load
    def make(self, params: dict[str, Any], **_: Any) -> Ppo:
        return Ppo(**ratio_bounds(params))


class CispoParamsSchema(RequestSchema):
    clip_low_threshold = lower_bound(NOT_BELOW_0, Cispo().ratio_low)
    clip_high_threshold = upper_bound(NOT_BELOW_0, Cispo().ratio_high)

    @post_load
    def make(self, params: dict[str, Any], **_: Any) -> Cispo:
        return Cispo(**ratio_bounds(params))


class LossConfigSchema(NativeLossConfigSchema):
    cross_entropy_params = fields.Nested(CrossEntropyParamsSchema)
    grpo_params = fields.Nested(GrpoParamsSchema)
    ppo_params = fields.Nested(PpoParamsSchema)
    cispo_params = fields.Nested(CispoParamsSchema)
