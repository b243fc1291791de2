"""The forward-backward call: its body, the checks that need the model, and the request it becomes."""

from typing import Any

import numpy as np
from marshmallow import fields

from contract.forward_backward import ForwardBackwardRequest, Grpo, Loss
from contract.limits import MOST_SAMPLES, Limits
from contract.model import ModelCard
from schemas.base import AnswerSchema, RequestSchema
from schemas.fields import BoundedList
from schemas.losses import LossConfigSchema
from schemas.model_input import outside_vocabulary, vocabulary_sentence
from schemas.operations import OperationSchema
from schemas.packing import Packing
from schemas.problems import refusal
from schemas.samples import TrainingSample, TrainingSampleSchema

GRPO_ARRAYS = ("advantages", "generator_logprobs", "reference_logprobs")


class ForwardBackwardBodySchema(RequestSchema):
    samples = BoundedList(
        fields.Nested(TrainingSampleSchema),
        most=MOST_SAMPLES,
        required=True,
        description="The batch; lengths may differ.",
        metadata={"minItems": 1},
    )
    loss = fields.Nested(LossConfigSchema, required=True)


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


def forward_backward_request(body: dict[str, Any], card: ModelCard, limits: Limits) -> ForwardBackwardRequest:
    """The packed request. Raises ValidationError for what the session's model or the server's limits refuse."""
    samples, loss = body["samples"], body["loss"]
    _check_count(samples, limits)
    for index, sample in enumerate(samples):
        _check_sample(sample, f"samples[{index}]", loss, card)
    _check_vocabulary(samples, card)
    return _pack(samples, loss)


def _check_count(samples: list[TrainingSample], limits: Limits) -> None:
    if not samples:
        raise refusal("samples", "needs at least one sample")
    if len(samples) > limits.max_samples_per_call:
        raise refusal("samples", f"has {len(samples)} samples, over the limit of {limits.max_samples_per_call}")


def _check_sample(sample: TrainingSample, path: str, loss: Loss, card: ModelCard) -> None:
    length = len(sample.model_input)
    if length > card.context_length:
        sentence = f"has {length} tokens, over the model's context of {card.context_length}"
        raise refusal(f"{path}.model_input.chunks", sentence)
    _check_grpo_inputs(sample.grpo, f"{path}.loss_inputs.grpo_inputs", loss)


def _check_grpo_inputs(grpo: dict[str, np.ndarray] | None, path: str, loss: Loss) -> None:
    if not isinstance(loss, Grpo):
        if grpo is not None:
            raise refusal(path, "does not belong to this loss")
    elif grpo is None:
        raise refusal(path, "is required for LOSS_TYPE_GRPO")
    elif loss.beta > 0 and "reference_logprobs" not in grpo:
        raise refusal(f"{path}.reference_logprobs", "is required when beta is above 0")


def _check_vocabulary(samples: list[TrainingSample], card: ModelCard) -> None:
    for index, sample in enumerate(samples):
        path = f"samples[{index}]"
        for chunk_path, tokens_T in _token_arrays(sample):
            offender = outside_vocabulary(tokens_T, card)
            if offender is not None:
                raise refusal(f"{path}.{chunk_path}[{offender}]", vocabulary_sentence(card))


def _token_arrays(sample: TrainingSample) -> list[tuple[str, np.ndarray]]:
    chunks = [
        (f"model_input.chunks[{number}].encoded_text.tokens", chunk)
        for number, chunk in enumerate(sample.model_input.chunks)
    ]
    if sample.target_tokens is None:
        return chunks
    return [*chunks, ("loss_inputs.target_tokens.data", sample.target_tokens)]


def _pack(samples: list[TrainingSample], loss: Loss) -> ForwardBackwardRequest:
    packing = Packing(samples)
    weights_T = packing.weights_T
    names = GRPO_ARRAYS[: 3 if loss.beta > 0 else 2] if isinstance(loss, Grpo) else ()
    arrays: dict[str, Any] = {f"{name}_T": packing.grpo_array_T(name, weights_T) for name in names}
    return ForwardBackwardRequest(
        offsets=packing.offsets,
        tokens_T=packing.tokens_T,
        targets_T=packing.targets_T,
        weights_T=weights_T,
        loss=loss,
        **arrays,
    )
