"""The optim-step call: learning rate and AdamW's parameters, all of them per call."""

from typing import Any

from marshmallow import fields

from domain.optim_step import OptimStepRequest
from schemas.base import AnswerSchema, RequestSchema
from schemas.bounds import FLOAT32_MAX, Bounds
from schemas.fields import Number
from schemas.operations import OperationSchema
from schemas.time_limit import timeout_seconds

DEFAULTS = OptimStepRequest()
DECAY = Bounds(0.0, 1.0, below=1.0)
# The second moment is kept in fp32, where the squares of smaller gradients than this are lost: eps takes their place.
LEAST_EPS = 1e-18


def learning_rate() -> Number:
    return Number(
        Bounds(0.0, FLOAT32_MAX), load_default=DEFAULTS.learning_rate, description="Learning rate of this step."
    )


class AdamWParamsSchema(RequestSchema):
    beta1 = Number(DECAY, load_default=DEFAULTS.beta1, description="Decay of the first moment.")
    beta2 = Number(DECAY, load_default=DEFAULTS.beta2, description="Decay of the second moment.")
    eps = Number(
        Bounds(LEAST_EPS, FLOAT32_MAX),
        load_default=DEFAULTS.eps,
        description="Added to the root of the second moment, which cannot hold anything smaller than the least eps.",
    )
    weight_decay = Number(
        Bounds(0.0, FLOAT32_MAX), load_default=DEFAULTS.weight_decay, description="Decoupled weight decay."
    )


class OptimStepBodySchema(RequestSchema):
    learning_rate = learning_rate()
    adamw_params = fields.Nested(AdamWParamsSchema, load_default=lambda: AdamWParamsSchema().load({}))
    timeout_seconds = timeout_seconds()


class OptimStepResultSchema(AnswerSchema):
    step = fields.Integer(
        required=True, metadata={"description": "Finished optim-steps, this one included.", "examples": [1]}
    )
    metrics = fields.Dict(
        keys=fields.String(),
        values=fields.Float(),
        required=True,
        metadata={
            "description": "L2 norms of the gradient and of the change of the weights.",
            "examples": [{"grad_norm": 0.8125, "update_norm": 0.0625}],
        },
    )


class OptimStepOperationSchema(OperationSchema):
    data = fields.Nested(OptimStepResultSchema, metadata={"description": "The result, once COMPLETED."})


def optim_step_request(body: dict[str, Any]) -> OptimStepRequest:
    return OptimStepRequest(learning_rate=body["learning_rate"], **body["adamw_params"])
