"""Which loss, its parameters, and the inputs that it takes."""

from collections.abc import Callable
from typing import Any, NamedTuple

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
from schemas.fields import Choice, Number, prefixed
from schemas.losses import AGGREGATIONS
from schemas.problems import refusal

NOT_BELOW_0 = Bounds(0.0, FLOAT32_MAX)
UP_TO_1 = Bounds(0.0, 1.0)
FROM_1 = Bounds(1.0, FLOAT32_MAX)


class NoParamsSchema(RequestSchema):
    """Cross-entropy has no parameters."""


class GrpoParamsSchema(RequestSchema):
    clip_low_threshold = Number(UP_TO_1, load_default=Grpo().ratio_low, description="The ratio's lower bound.")
    clip_high_threshold = Number(FROM_1, load_default=Grpo().ratio_high, description="The ratio's upper bound.")
    beta = Number(NOT_BELOW_0, load_default=0.0, description="Weight of the KL penalty to reference_logprobs.")
    agg_type = Choice(
        AGGREGATIONS, load_default=Aggregation.FIXED_HORIZON, description="How per-token losses become the call's."
    )
    ratio_type = Choice(
        prefixed(RatioType, "GRPO_LOSS_RATIO_TYPE_"),
        load_default=RatioType.TOKEN,
        description="Whether each token has a ratio of its own.",
    )


class PpoParamsSchema(RequestSchema):
    clip_low_threshold = Number(UP_TO_1, load_default=Ppo().ratio_low, description="The ratio's lower bound.")
    clip_high_threshold = Number(FROM_1, load_default=Ppo().ratio_high, description="The ratio's upper bound.")


class CispoParamsSchema(RequestSchema):
    clip_low_threshold = Number(NOT_BELOW_0, load_default=Cispo().ratio_low, description="The ratio's lower bound.")
    clip_high_threshold = Number(NOT_BELOW_0, load_default=Cispo().ratio_high, description="The ratio's upper bound.")


class DroParamsSchema(RequestSchema):
    beta = Number(NOT_BELOW_0, required=True, description="Weight of the quadratic penalty on the log ratio.")


class DppoParamsSchema(RequestSchema):
    delta_low = Number(UP_TO_1, load_default=Dppo().delta_low, description="Bound for negative advantages.")
    delta_high = Number(UP_TO_1, load_default=Dppo().delta_high, description="Bound for positive advantages.")


class Kind(NamedTuple):
    """A loss's parameters (if it has any), and how they become the loss."""

    params: str | None
    make: Callable[[dict[str, Any]], Loss]


def _clipped(params: dict[str, Any]) -> dict[str, Any]:
    """The dialect's names for the bounds in place of ours."""
    rest = dict(params)
    return {"ratio_low": rest.pop("clip_low_threshold"), "ratio_high": rest.pop("clip_high_threshold"), **rest}


def _grpo(params: dict[str, Any]) -> Grpo:
    rest = _clipped(params)
    return Grpo(aggregation=rest.pop("agg_type"), **rest)


KINDS = {
    "LOSS_TYPE_CROSS_ENTROPY": Kind("cross_entropy_params", lambda _: CrossEntropy(aggregation=Aggregation.SUM)),
    "LOSS_TYPE_GRPO": Kind("grpo_params", _grpo),
    "LOSS_TYPE_IMPORTANCE_SAMPLING": Kind(None, lambda _: ImportanceSampling()),
    "LOSS_TYPE_PPO": Kind("ppo_params", lambda params: Ppo(**_clipped(params))),
    "LOSS_TYPE_CISPO": Kind("cispo_params", lambda params: Cispo(**_clipped(params))),
    "LOSS_TYPE_DRO": Kind("dro_params", lambda params: Dro(**params)),
    "LOSS_TYPE_DPPO": Kind("dppo_params", lambda params: Dppo(**params)),
}


class LossConfigSchema(RequestSchema):
    type = Choice({name: name for name in KINDS}, required=True, description="The loss; there is no default.")
    cross_entropy_params = fields.Nested(NoParamsSchema)
    grpo_params = fields.Nested(GrpoParamsSchema)
    ppo_params = fields.Nested(PpoParamsSchema)
    cispo_params = fields.Nested(CispoParamsSchema)
    dro_params = fields.Nested(DroParamsSchema, metadata={"description": "Required for LOSS_TYPE_DRO."})
    dppo_params = fields.Nested(DppoParamsSchema)

    @post_load
    def make(self, data: dict[str, Any], **_: Any) -> Loss:
        name = data.pop("type")
        kind = KINDS[name]
        for other in data:
            if other != kind.params:
                raise refusal(other, f"does not belong to {name}")
        if kind.params is None:
            return kind.make({})
        if kind.params not in data and name == "LOSS_TYPE_DRO":
            raise refusal("dro_params", "is required for LOSS_TYPE_DRO")
        return kind.make(data.get(kind.params) or self.fields[kind.params].schema.load({}))  # type: ignore[attr-defined]
