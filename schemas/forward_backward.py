"""The forward-backward call: its body, the checks that need the model, and the request it becomes."""

from typing import Any

import numpy as np
from marshmallow import fields

from domain.forward_backward import ForwardBackwardRequest, Grpo, Loss
from domain.limits import MOST_SAMPLES, Limits
from domain.model import ModelCard
from schemas.base import AnswerSchema, RequestSchema
from schemas.batch import check_batch, pack
from schemas.fields import BoundedList
from schemas.losses import LossConfigSchema
from schemas.operations import OperationSchema
from schemas.problems import refusal
from schemas.samples import TrainingSampleSchema
from schemas.time_limit import timeout_seconds


class ForwardBackwardBodySchema(RequestSchema):
    samples = BoundedList(
        fields.Nested(TrainingSampleSchema),
        most=MOST_SAMPLES,
        required=True,
        description="The batch; lengths may differ.",
        metadata={"minItems": 1},
    )
    loss = fields.Nested(LossConfigSchema, required=True)
    timeout_seconds = timeout_seconds()


class ForwardBackwardResultSchema(AnswerSchema):
    loss = fields.Float(
        required=True, metadata={"description": "The scalar whose gradient was added.", "examples": [0.6931]}
    )
    metrics = fields.Dict(
        keys=fields.String(),
        values=fields.Float(),
        required=True,
        metadata={
            "description": "Named numbers about the loss.",
            "examples": [{"loss:sum": 2.7724, "loss:mean": 0.6931, "valid_tokens:sum": 4.0}],
        },
    )


class ForwardBackwardOperationSchema(OperationSchema):
    data = fields.Nested(ForwardBackwardResultSchema, metadata={"description": "The result, once COMPLETED."})


def forward_backward_request(
    body: dict[str, Any], card: ModelCard, limits: Limits, horizon: int
) -> ForwardBackwardRequest:
    """The packed request. Raises ValidationError for what the session's model or the server's limits refuse."""
    # They are not kept beside what is made of them.
    samples, loss = body.pop("samples"), body["loss"]
    for index, sample in enumerate(samples):
        _check_grpo_inputs(sample.policy, f"samples[{index}].loss_inputs.grpo_inputs", loss)
    check_batch(samples, card, limits, targets="loss_inputs.target_tokens.data")
    return pack(samples, loss, horizon=horizon)


def _check_grpo_inputs(grpo: dict[str, np.ndarray] | None, path: str, loss: Loss) -> None:
    if not isinstance(loss, Grpo):
        if grpo is not None:
            raise refusal(path, "does not belong to this loss")
    elif grpo is None:
        raise refusal(path, "is required for LOSS_TYPE_GRPO")
    elif loss.beta > 0 and "reference_logprobs" not in grpo:
        raise refusal(f"{path}.reference_logprobs", "is required when beta is above 0")
