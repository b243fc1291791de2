"""What each session asks for: a seeded sequence of operations, the same whenever the seed is."""

import random
from typing import Any, NamedTuple

from tests.stories.client import Json, prompt, sample_body, step_body, train_body, whole
from tests.tiny_model import TOKENIZER_SIZE

KINDS = ("forward-backward", "optim-step", "sample")


class Planned(NamedTuple):
    kind: str
    body: Json


def plan(seed: int, length: int) -> list[Planned]:
    """Rounds of one to three forward-backwards and a step, with samples in between."""
    rng = random.Random(seed)
    operations: list[Planned] = []
    while len(operations) < length:
        for _ in range(rng.randint(1, 3)):
            operations.append(Planned("forward-backward", _training(rng)))
        if rng.random() < 0.1:
            operations.append(Planned("forward-backward", _hopeless(rng)))
        operations.append(Planned("optim-step", step_body(rng.choice([1e-3, 1e-2]), weight_decay=rng.random() / 10)))
        for _ in range(rng.randint(0, 3)):
            operations.append(Planned("sample", _sampling(rng)))
    return operations[:length]


def _tokens(rng: random.Random, most: int = 24) -> list[int]:
    return [rng.randrange(TOKENIZER_SIZE) for _ in range(rng.randint(2, most))]


def _training(rng: random.Random) -> Json:
    sequences = [_tokens(rng) for _ in range(rng.randint(1, 4))]
    if rng.random() < 0.5:
        return train_body([whole(tokens) for tokens in sequences], "LOSS_TYPE_CROSS_ENTROPY")
    return train_body([_scored(tokens, rng, -3.0) for tokens in sequences], agg_type="sequence_mean")


def _hopeless(rng: random.Random) -> Json:
    """Its ratio is beyond fp32: it fails as not finite and adds nothing."""
    return train_body([_scored(_tokens(rng), rng, -300.0)])


def _scored(tokens: list[int], rng: random.Random, logprob: float) -> Json:
    grpo: dict[str, Any] = {
        "advantages": {"data": [rng.uniform(-1, 1) for _ in tokens]},
        "generator_logprobs": {"data": [logprob] * len(tokens)},
    }
    return {"model_input": prompt(tokens), "loss_inputs": {"grpo_inputs": grpo}}


def _sampling(rng: random.Random) -> Json:
    params: Json = {"max_tokens": rng.randint(1, 12), "seed": rng.randrange(1 << 32)}
    if rng.random() < 0.3:
        params["temperature"] = 0
    return sample_body(_tokens(rng), rng.randint(1, 3), **params)
