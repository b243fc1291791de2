"""The optim-step call: parameters of Adam or of Muon, whichever the model resources are made for."""

from typing import Any

import msgspec
from marshmallow import fields

from domain.optim_step import Muon, OptimStepRequest
from schemas.base import AnswerSchema, RequestSchema
from schemas.bounds import FLOAT32_MAX, Bounds
from schemas.fields import Integer, Number
from schemas.optim_step import DECAY, DEFAULTS, AdamWParamsSchema, learning_rate
from schemas.problems import refusal
from schemas.together.operations import OperationSchema

CLIP_NORM = 1.0
NOT_BELOW_0 = Bounds(0.0, FLOAT32_MAX)


def grad_clip_norm() -> Number:
    return Number(
        NOT_BELOW_0,
        load_default=CLIP_NORM,
        description="Gradients whose L2 norm is above it are scaled down to it; 0 is off.",
    )


class AdamParamsSchema(AdamWParamsSchema):
    learning_rate = learning_rate()
    grad_clip_norm = grad_clip_norm()


class MuonParamsSchema(RequestSchema):
    adam = fields.Nested(
        AdamParamsSchema, metadata={"description": "Has nothing to act on: all matrices of an adapter are Muon's."}
    )
    learning_rate = learning_rate()
    grad_clip_norm = grad_clip_norm()
    momentum = Number(DECAY, load_default=Muon().momentum, description="Momentum.")
    newton_schulz_steps = Integer(
        Bounds(1, 100), load_default=Muon().newton_schulz_steps, description="Newton-Schulz iterations."
    )
    weight_decay = Number(NOT_BELOW_0, load_default=DEFAULTS.weight_decay, description="Decoupled weight decay.")


class OptimStepBodySchema(RequestSchema):
    adam_params = fields.Nested(AdamParamsSchema)
    muon_params = fields.Nested(MuonParamsSchema)


class OptimStepResultSchema(AnswerSchema):
    step = fields.Integer(required=True, metadata={"description": "Finished optim-steps.", "examples": [1]})


class OptimStepOperationSchema(OperationSchema):
    output = fields.Nested(OptimStepResultSchema, metadata={"description": "The result, once COMPLETED."})


def optim_step_request(body: dict[str, Any], muon: Muon | None) -> OptimStepRequest:
    """`muon` is what the session's model resources were made with. Raises ValidationError for parameters of the other
    optimizer."""
    own, other = ("muon_params", "adam_params") if muon else ("adam_params", "muon_params")
    if other in body:
        raise refusal(other, "is not the optimizer of these model resources")
    if muon is None:
        return OptimStepRequest(**(body.get(own) or AdamParamsSchema().load({})))
    params = dict(body.get(own) or MuonParamsSchema().load({}))
    params.pop("adam", None)
    momentum, steps = params.pop("momentum"), params.pop("newton_schulz_steps")
    made = msgspec.structs.replace(muon, momentum=momentum, newton_schulz_steps=steps)
    return OptimStepRequest(**params, muon=made)
