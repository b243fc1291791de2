"""Cutting a call's samples into forward passes of bounded size, in which a common beginning is run once."""

from dataclasses import dataclass

import numpy as np

# A shorter common beginning costs more in bookkeeping than it saves.
LEAST_PREFIX = 16


@dataclass
class Family:
    """Samples, one after the other in their call, that all begin with the same `prefix` tokens."""

    prefix: int
    samples: list[int]


def cut(samples: list[np.ndarray], max_tokens: int, shares: bool) -> list[list[Family]]:
    """Passes that run at most `max_tokens` tokens each, of the samples' `tokens [L]` in their order.

    Empty samples are left out; one longer than `max_tokens` is alone. Without `shares` no tokens are shared.
    """
    passes: list[list[Family]] = []
    room = 0
    for index, tokens in enumerate(samples):
        if not len(tokens):
            continue
        prefix, cost = _joined(passes[-1][-1], samples, index) if shares and passes else (0, len(tokens))
        if cost > room:
            passes.append([])
            prefix, cost, room = 0, len(tokens), max_tokens
        if prefix:
            passes[-1][-1].samples.append(index)
            passes[-1][-1].prefix = prefix
        else:
            passes[-1].append(Family(0, [index]))
        room -= cost
    return passes


def _joined(family: Family, samples: list[np.ndarray], index: int) -> tuple[int, int]:
    """The family's prefix with sample `index` in it, and the tokens that this adds; prefix 0 when it had better stay
    alone."""
    known, tokens = samples[family.samples[0]], samples[index]
    most = min(len(known), len(tokens)) - 1
    if len(family.samples) > 1:
        most = min(most, family.prefix)
    prefix = _common(known[:most], tokens[:most])
    saved_before, saved_after = family.prefix * (len(family.samples) - 1), prefix * len(family.samples)
    if prefix < LEAST_PREFIX or saved_after <= saved_before:
        return 0, len(tokens)
    return prefix, len(tokens) - (saved_after - saved_before)


def _common(one: np.ndarray, other: np.ndarray) -> int:
    """How many tokens both begin with."""
    differences = np.flatnonzero(one != other)
    return int(differences[0]) if len(differences) else len(one)
