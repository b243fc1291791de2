"""What a client asks for: a seeded story in chapters, the same whenever the seed is."""

import random
from typing import Any, NamedTuple

from tests.stories.client import Json, prompt, sample_body, step_body, train_body, whole
from tests.tiny_model import TOKENIZER_SIZE

CHAPTER_LENGTH = 60
CHECKPOINTS = ("training-checkpoint", "inference-checkpoint")


class Planned(NamedTuple):
    kind: str
    body: Json


class Chapter(NamedTuple):
    """The operations of one session. The next chapter's session goes on from the training checkpoint that is number
    `origin` of them; after that the checkpoints of the numbers in `doomed` are deleted."""

    operations: list[Planned]
    origin: int
    doomed: frozenset[int]


def plan(seed: int, length: int) -> list[Chapter]:
    """At least two chapters, `length` operations together."""
    rng = random.Random(seed)
    count = max(2, round(length / CHAPTER_LENGTH))
    return [_chapter(rng, (length + number) // count) for number in range(count)]


def _chapter(rng: random.Random, length: int) -> Chapter:
    """Rounds, with the origin somewhere in the second half, so that what follows it must not show in it."""
    operations: list[Planned] = []
    while len(operations) < length - 1:
        operations += _round(rng)
    origin = rng.randrange(length // 2, length)
    operations = operations[: length - 1]
    operations.insert(origin, Planned("training-checkpoint", {}))
    saved = [number for number, operation in enumerate(operations) if operation.kind in CHECKPOINTS]
    return Chapter(operations, origin, frozenset(number for number in saved if rng.random() < 0.4))


def _round(rng: random.Random) -> list[Planned]:
    """One to three forward-backwards and a step, then samples; now and then a checkpoint, also between the two."""
    operations = [Planned("forward-backward", _training(rng)) for _ in range(rng.randint(1, 3))]
    if rng.random() < 0.1:
        operations.append(Planned("forward-backward", _hopeless(rng)))
    operations.append(Planned("optim-step", step_body(rng.choice([1e-3, 1e-2]), weight_decay=rng.random() / 10)))
    operations += [Planned("sample", _sampling(rng)) for _ in range(rng.randint(0, 3))]
    if rng.random() < 0.5:
        operations.insert(rng.randint(1, len(operations)), Planned(rng.choice(CHECKPOINTS), {}))
    return operations


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
