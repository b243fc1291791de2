"""Which loss, and its parameters: the way from the wire's clip offsets to absolute ratio bounds."""

from typing import Any

from marshmallow import fields, post_load

from domain.forward_backward import (
    Aggregation,
    Cispo,
    CrossEntropy,
    Dppo,
    Dro,
    Grpo,
    ImportanceSampling,
    Loss,
    Ppo,
    RatioType,
)
from schemas.base import RequestSchema
from schemas.bounds import FLOAT32_MAX, Bounds
from schemas.fields import AnyCaseChoice, Choice, Number, prefixed
from schemas.problems import refusal

NOT_BELOW_0 = Bounds(0.0, FLOAT32_MAX)
UP_TO_1 = Bounds(0.0, 1.0)
AGGREGATION_PREFIX = "GRPO_LOSS_AGGREGATION_TYPE_"
# What GRPO may be told: its loss is a mean of some kind in every dialect.
MEANS = tuple(member for member in Aggregation if member is not Aggregation.SUM)
AGGREGATIONS = {
    **{f"{AGGREGATION_PREFIX}{member.name}": member for member in MEANS},
    f"{AGGREGATION_PREFIX}UNSPECIFIED": Aggregation.FIXED_HORIZON,
}
RATIO_TYPES = prefixed(RatioType, "GRPO_LOSS_RATIO_TYPE_")


def clip_low(default: float) -> Number:
    return Number(UP_TO_1, load_default=default, description="The ratio is clamped from below at 1 - clip_low.")


def clip_high(default: float) -> Number:
    return Number(NOT_BELOW_0, load_default=default, description="The ratio is clamped from above at 1 + clip_high.")


def beta_of_grpo() -> Number:
    return Number(NOT_BELOW_0, load_default=0.0, description="Weight of the KL penalty to reference_logprobs.")


def ratio_bounds(params: dict[str, Any]) -> dict[str, Any]:
    """The absolute bounds, in place of the offsets, which leave `params`."""
    return {"ratio_low": 1.0 - params.pop("clip_low"), "ratio_high": 1.0 + params.pop("clip_high")}


class CrossEntropyParamsSchema(RequestSchema):
    """Cross-entropy has no parameters."""

    @post_load
    def make(self, _: dict[str, Any], **__: Any) -> CrossEntropy:
        return CrossEntropy()


class GrpoParamsSchema(RequestSchema):
    clip_low = clip_low(0.2)
    clip_high = clip_high(0.28)
    beta = beta_of_grpo()
    agg_type = AnyCaseChoice(
        {**{member.value: member for member in MEANS}, **AGGREGATIONS},
        load_default=Aggregation.FIXED_HORIZON,
        description="How the call's per-token losses become its loss.",
    )
    ratio_type = AnyCaseChoice(
        {**{member.value: member for member in RatioType}, **RATIO_TYPES},
        load_default=RatioType.TOKEN,
        description="Whether each token has a ratio of its own, or all of a sample share one.",
    )

    @post_load
    def make(self, params: dict[str, Any], **_: Any) -> Grpo:
        return Grpo(**ratio_bounds(params), aggregation=params.pop("agg_type"), **params)


class PpoParamsSchema(RequestSchema):
    clip_low = clip_low(0.2)
    clip_high = clip_high(0.2)

    @post_load
    def make(self, params: dict[str, Any], **_: Any) -> Ppo:
        return Ppo(**ratio_bounds(params))


class CispoParamsSchema(RequestSchema):
    clip_low = clip_low(1.0)
    clip_high = clip_high(3.0)

    @post_load
    def make(self, params: dict[str, Any], **_: Any) -> Cispo:
        return Cispo(**ratio_bounds(params))


class DroParamsSchema(RequestSchema):
    beta = Number(NOT_BELOW_0, required=True, description="Weight of the quadratic penalty on the log ratio.")

    @post_load
    def make(self, params: dict[str, Any], **_: Any) -> Dro:
        return Dro(**params)


class DppoParamsSchema(RequestSchema):
    delta_low = Number(UP_TO_1, load_default=Dppo().delta_low, description="Bound for negative advantages.")
    delta_high = Number(UP_TO_1, load_default=Dppo().delta_high, description="Bound for positive advantages.")

    @post_load
    def make(self, params: dict[str, Any], **_: Any) -> Dppo:
        return Dppo(**params)


PARAMS: dict[str, str | Loss] = {
    "LOSS_TYPE_CROSS_ENTROPY": "cross_entropy_params",
    "LOSS_TYPE_GRPO": "grpo_params",
    "LOSS_TYPE_IMPORTANCE_SAMPLING": ImportanceSampling(),
    "LOSS_TYPE_PPO": "ppo_params",
    "LOSS_TYPE_CISPO": "cispo_params",
    "LOSS_TYPE_DRO": "dro_params",
    "LOSS_TYPE_DPPO": "dppo_params",
}
"""The field with each loss's parameters, or the loss itself where it has none."""


class LossConfigSchema(RequestSchema):
    """`type`, and its parameters in the field that PARAMS names. A dialect has its own schema for each of those."""

    type = Choice({name: name for name in PARAMS}, required=True, description="The loss; there is no default.")
    cross_entropy_params = fields.Nested(CrossEntropyParamsSchema)
    grpo_params = fields.Nested(GrpoParamsSchema)
    ppo_params = fields.Nested(PpoParamsSchema)
    cispo_params = fields.Nested(CispoParamsSchema)
    dro_params = fields.Nested(DroParamsSchema, metadata={"description": "Required for LOSS_TYPE_DRO."})
    dppo_params = fields.Nested(DppoParamsSchema)

    @post_load
    def make(self, data: dict[str, Any], **_: Any) -> Loss:
        name = data.pop("type")
        own = PARAMS[name]
        for other in data:
            if other != own:
                raise refusal(other, f"does not belong to {name}")
        if not isinstance(own, str):
            return own
        return data[own] if own in data else self._by_default(own, name)

    def _by_default(self, params: str, name: str) -> Loss:
        schema = self.fields[params].schema  # type: ignore[attr-defined]
        if any(field.required for field in schema.fields.values()):
            raise refusal(params, f"is required for {name}")
        loss: Loss = schema.load({})
        return loss
