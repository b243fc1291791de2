"""Which loss, and its parameters: the way from the wire's clip offsets to absolute ratio bounds."""

from enum import StrEnum
from typing import Any

from marshmallow import fields, post_load

from domain.forward_backward import Aggregation, CrossEntropy, Grpo, Loss
from schemas.base import RequestSchema
from schemas.bounds import FLOAT32_MAX, Bounds
from schemas.fields import AnyCaseChoice, Choice, Number, prefixed
from schemas.problems import refusal

CLIP_LOW, CLIP_HIGH = 0.2, 0.28
AGGREGATION_PREFIX = "GRPO_LOSS_AGGREGATION_TYPE_"
# What GRPO may be told: its loss is a mean of some kind in every contract.
MEANS = tuple(member for member in Aggregation if member is not Aggregation.SUM)
AGGREGATIONS = {
    **{
        name: member
        for name, member in prefixed(Aggregation, AGGREGATION_PREFIX).items()
        if member is not Aggregation.SUM
    },
    f"{AGGREGATION_PREFIX}UNSPECIFIED": Aggregation.FIXED_HORIZON,
}


class LossType(StrEnum):
    CROSS_ENTROPY = "CROSS_ENTROPY"
    GRPO = "GRPO"


PARAMS = {LossType.CROSS_ENTROPY: "cross_entropy_params", LossType.GRPO: "grpo_params"}


class CrossEntropyParamsSchema(RequestSchema):
    """Cross-entropy has no parameters."""


class GrpoParamsSchema(RequestSchema):
    clip_low = Number(
        Bounds(0.0, 1.0), load_default=CLIP_LOW, description="The ratio is clamped from below at 1 - clip_low."
    )
    clip_high = Number(
        Bounds(0.0, FLOAT32_MAX),
        load_default=CLIP_HIGH,
        description="The ratio is clamped from above at 1 + clip_high.",
    )
    beta = Number(
        Bounds(0.0, FLOAT32_MAX), load_default=0.0, description="Weight of the KL penalty to reference_logprobs."
    )
    agg_type = AnyCaseChoice(
        {**{member.value: member for member in MEANS}, **AGGREGATIONS},
        load_default=Aggregation.FIXED_HORIZON,
        description="How the call's per-token losses become its loss.",
    )

    @post_load
    def make(self, params: dict[str, Any], **_: Any) -> Grpo:
        return Grpo(
            ratio_low=1.0 - params["clip_low"],
            ratio_high=1.0 + params["clip_high"],
            beta=params["beta"],
            aggregation=params["agg_type"],
        )


class LossConfigSchema(RequestSchema):
    type = Choice(prefixed(LossType, "LOSS_TYPE_"), required=True, description="The loss; there is no default.")
    cross_entropy_params = fields.Nested(CrossEntropyParamsSchema)
    grpo_params = fields.Nested(GrpoParamsSchema)

    @post_load
    def make(self, data: dict[str, Any], **_: Any) -> Loss:
        own = PARAMS[data["type"]]
        for other in set(PARAMS.values()) - {own}:
            if other in data:
                raise refusal(other, f"does not belong to LOSS_TYPE_{data['type']}")
        if data["type"] is LossType.CROSS_ENTROPY:
            return CrossEntropy()
        return data.get(own) or GrpoParamsSchema().load({})
