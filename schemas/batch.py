"""A batch of training samples: the checks that need the model, and the packed request it becomes."""

from typing import Any, get_args

import numpy as np

from domain.forward_backward import ForwardBackwardRequest, Grpo, Loss, PolicyLoss
from domain.limits import Limits
from domain.model import ModelCard
from schemas.model_input import outside_vocabulary, over_context, vocabulary_sentence
from schemas.packing import Packing
from schemas.problems import refusal
from schemas.samples import TrainingSample

POLICY_ARRAYS = ("advantages", "generator_logprobs")


def check_batch(samples: list[TrainingSample], card: ModelCard, limits: Limits, targets: str) -> None:
    """Raises ValidationError; `targets` is the path of the target tokens inside a sample."""
    if not samples:
        raise refusal("samples", "needs at least one sample")
    if len(samples) > limits.max_samples_per_call:
        raise refusal("samples", f"has {len(samples)} samples, over the limit of {limits.max_samples_per_call}")
    for index, sample in enumerate(samples):
        length = len(sample.model_input)
        if length > card.context_length:
            raise refusal(f"samples[{index}].model_input.chunks", over_context(length, card))
    for index, sample in enumerate(samples):
        _check_vocabulary(sample, f"samples[{index}]", card, targets)


def _check_vocabulary(sample: TrainingSample, path: str, card: ModelCard, targets: str) -> None:
    offender = outside_vocabulary(sample.model_input.tokens_T, card)
    if offender is not None:
        raise refusal(f"{path}.model_input.{sample.model_input.place_of(offender)}", vocabulary_sentence(card))
    offender = None if sample.target_tokens is None else outside_vocabulary(sample.target_tokens, card)
    if offender is not None:
        raise refusal(f"{path}.{targets}[{offender}]", vocabulary_sentence(card))


def pack(
    samples: list[TrainingSample], loss: Loss, *, horizon: int | None = None, **flags: bool
) -> ForwardBackwardRequest:
    """The request; `flags` are what else a ForwardBackwardRequest may ask."""
    packing = Packing(samples)
    weights_T = packing.weights_T
    names = POLICY_ARRAYS if isinstance(loss, get_args(PolicyLoss)) else ()
    if isinstance(loss, Grpo) and loss.beta > 0:
        names = (*names, "reference_logprobs")
    arrays: dict[str, np.ndarray] = {f"{name}_T": packing.policy_array_T(name, weights_T) for name in names}
    options: dict[str, Any] = {**arrays, **flags}
    return ForwardBackwardRequest(
        offsets=packing.offsets,
        tokens_T=packing.tokens_T,
        targets_T=packing.targets_T,
        weights_T=weights_T,
        loss=loss,
        horizon=horizon,
        **options,
    )
