"""What operations ask for, at random from a seed: requests as the store keeps them, whatever dialect carries them."""

import random
from typing import Any

import numpy as np
from msgspec.structs import replace

from domain.forward_backward import (
    Aggregation,
    Cispo,
    CrossEntropy,
    Dppo,
    Dro,
    ForwardBackwardRequest,
    Grpo,
    ImportanceSampling,
    Loss,
    Ppo,
    RatioType,
    WeightedLogprobs,
)
from domain.optim_step import OptimStepRequest
from domain.sample import SampleRequest, SamplingParams
from testing.tiny_model import TOKENIZER_SIZE

HORIZON = 1024
MEANS = [member for member in Aggregation if member is not Aggregation.SUM]
LOGPROB = -3.0
# The ratio of a token to this is beyond fp32.
NON_FINITE_LOGPROB = -300.0


def loss(rng: random.Random, cross_entropy: CrossEntropy) -> Loss:
    """Any, where dialects have their own aggregation of the cross-entropy."""
    grpo = Grpo(beta=rng.choice([0.0, 0.5]), aggregation=rng.choice(MEANS), ratio_type=rng.choice(list(RatioType)))
    losses: list[Loss] = [cross_entropy, grpo, ImportanceSampling(), Ppo(), Cispo(), Dro(beta=0.5), Dppo()]
    return rng.choice(losses)


def training(
    rng: random.Random, loss: Loss, generator_logprob: float = LOGPROB, *, forward_only: bool = False
) -> ForwardBackwardRequest:
    """One to four samples of 2 to 24 tokens, now and then with a token that is not trained."""
    request = _batch(rng, loss)
    size = len(request.tokens_T)
    arrays = {"weights_T": np.array([rng.random() > 0.1 for _ in range(size)], np.float32)}
    if not isinstance(loss, CrossEntropy):
        arrays["advantages_T"] = _floats(rng, size, -1.0, 1.0)
        arrays["generator_logprobs_T"] = np.full(size, generator_logprob, np.float32)
    if isinstance(loss, Grpo) and loss.beta > 0:
        arrays["reference_logprobs_T"] = _floats(rng, size, -4.0, -2.0)
    return replace(request, **arrays, forward_only=forward_only, return_logprobs=forward_only, horizon=HORIZON)


def non_finite_training(rng: random.Random) -> ForwardBackwardRequest:
    """It ends as not finite, and adds nothing."""
    return training(rng, Grpo(aggregation=Aggregation.TOKEN_MEAN), NON_FINITE_LOGPROB)


def custom_training(rng: random.Random) -> ForwardBackwardRequest:
    """The gradients of a loss that the client has computed."""
    request = _batch(rng, WeightedLogprobs())
    return replace(request, weights_T=_floats(rng, len(request.tokens_T), -1.0, 1.0))


def step(rng: random.Random, grad_clip_norm: float) -> OptimStepRequest:
    rate = rng.choice([1e-3, 1e-2])
    return OptimStepRequest(learning_rate=rate, weight_decay=rng.random() / 10, grad_clip_norm=grad_clip_norm)


def sampling(rng: random.Random, prompts: int = 1) -> SampleRequest:
    """Greedy or not, with the logprobs of the prompts or without."""
    params = SamplingParams(max_tokens=rng.randint(1, 12), temperature=float(rng.random() > 0.3))
    return SampleRequest(
        prompts=tuple(_tokens(rng, rng.randint(2, 24)) for _ in range(prompts)),
        num_samples=rng.randint(1, 3),
        params=params,
        seed=rng.randrange(1 << 32),
        prompt_logprobs=rng.random() < 0.3,
    )


def samples_of(request: ForwardBackwardRequest, array: np.ndarray | None) -> list[list[Any]]:
    """An array of a packed request, sample by sample."""
    assert array is not None
    return [part.tolist() for part in np.split(array, request.offsets[1:-1])]


def _batch(rng: random.Random, loss: Loss) -> ForwardBackwardRequest:
    lengths = [rng.randint(2, 24) for _ in range(rng.randint(1, 4))]
    size = sum(lengths)
    return ForwardBackwardRequest(
        offsets=np.cumsum([0, *lengths], dtype=np.int64),
        tokens_T=_tokens(rng, size),
        targets_T=_tokens(rng, size),
        weights_T=np.ones(size, np.float32),
        loss=loss,
    )


def _tokens(rng: random.Random, count: int) -> np.ndarray:
    return np.array([rng.randrange(TOKENIZER_SIZE) for _ in range(count)], np.int32)


def _floats(rng: random.Random, count: int, least: float, most: float) -> np.ndarray:
    return np.array([rng.uniform(least, most) for _ in range(count)], np.float32)
