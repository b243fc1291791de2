"""The forward-backward call: its body, the checks that need the model, and the request it becomes."""

from typing import Any

from marshmallow import fields

from domain.forward_backward import CrossEntropy, ForwardBackwardRequest, Grpo, Loss
from domain.limits import MOST_SAMPLES, Limits
from domain.model import ModelCard
from schemas.base import AnswerSchema, RequestSchema
from schemas.batch import check_batch, pack
from schemas.fields import BoundedList
from schemas.losses import LossConfigSchema
from schemas.operations import OperationSchema
from schemas.problems import refusal
from schemas.samples import TrainingSample, TrainingSampleSchema
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
        _check_policy_inputs(sample, f"samples[{index}].loss_inputs", loss)
    check_batch(samples, card, limits, targets="loss_inputs.target_tokens.data")
    return pack(samples, loss, horizon=horizon)


def _check_policy_inputs(sample: TrainingSample, path: str, loss: Loss) -> None:
    own = _policy_field(loss)
    if sample.policy_field not in (None, own):
        raise refusal(f"{path}.{sample.policy_field}", "does not belong to this loss")
    if own is not None and sample.policy is None:
        raise refusal(f"{path}.{own}", "is required for this loss")
    if isinstance(loss, Grpo) and loss.beta > 0 and "reference_logprobs" not in (sample.policy or ()):
        raise refusal(f"{path}.{own}.reference_logprobs", "is required when beta is above 0")


def _policy_field(loss: Loss) -> str | None:
    """Where a sample has what this loss reads beside the targets."""
    if isinstance(loss, CrossEntropy):
        return None
    return "grpo_inputs" if isinstance(loss, Grpo) else "policy_inputs"
