"""A forward-backward call cut into forward passes of bounded size, in which a common prefix is run once."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from domain.forward_backward import ForwardBackwardRequest

# A shorter common prefix costs more in bookkeeping than it saves.
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
    """The family's prefix once sample `index` is in it, and the tokens that this adds to the pass; prefix 0 where it
    should not join."""
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
    """The length of the common prefix."""
    differences = np.flatnonzero(one != other)
    return int(differences[0]) if len(differences) else len(one)


@dataclass(frozen=True)
class MicroBatch:
    """Rows of a pass: family after family, the common prefix and then the rest of each sample.

    `tokens_T` and `positions_T` are the rows'. Wanted token n of the call, number `index_N[n]` in it, is predicted
    from row `rows_N[n]`; a row of a prefix may predict tokens of several samples.
    """

    families: list[Family]
    suffixes: list[list[int]]
    tokens_T: Tensor
    positions_T: Tensor
    rows_N: Tensor
    index_N: Tensor

    @property
    def samples(self) -> list[int]:
        return [sample for family in self.families for sample in family.samples]

    @property
    def segments(self) -> list[tuple[int, list[int]]]:
        """Each family's prefix length, and the lengths of what goes on from it."""
        return [(family.prefix, lengths) for family, lengths in zip(self.families, self.suffixes, strict=True)]


class PackedCall:
    """The packed tokens of a call. A sample is run up to its last wanted token only: the last trained one, or the very
    last if all logprobs are returned, since later tokens do not change earlier ones."""

    def __init__(self, request: ForwardBackwardRequest) -> None:
        self._starts = request.offsets[:-1]
        everything = np.ones(len(request.tokens_T), bool)
        wanted_T = everything if request.return_logprobs else request.weights_T != 0
        self._wanted = [part[: _reach(part)] for part in np.split(wanted_T, request.offsets[1:-1])]
        tokens = np.split(request.tokens_T, request.offsets[1:-1])
        self._tokens = [part[: len(wanted)] for part, wanted in zip(tokens, self._wanted, strict=True)]

    def cut(self, max_tokens: int, shares: bool) -> list[list[Family]]:
        """The families of each pass."""
        return cut(self._tokens, max_tokens, shares)

    def micro_batch(self, families: list[Family], device: torch.device) -> MicroBatch:
        tokens, positions, rows, index = ([np.zeros(0, np.int64)] for _ in range(4))
        suffixes, at = [], 0
        for family in families:
            prefix, prefix_at = family.prefix, at
            tokens.append(self._tokens[family.samples[0]][:prefix])
            positions.append(np.arange(prefix))
            at += prefix
            for sample in family.samples:
                own, wanted = self._tokens[sample][prefix:], np.flatnonzero(self._wanted[sample])
                tokens.append(own)
                positions.append(prefix + np.arange(len(own)))
                rows.append(wanted + np.where(wanted < prefix, prefix_at, at - prefix))
                index.append(wanted + self._starts[sample])
                at += len(own)
            suffixes.append([len(self._tokens[sample]) - prefix for sample in family.samples])
        joined = [np.concatenate(parts).astype(np.int64) for parts in (tokens, positions, rows, index)]
        return MicroBatch(families, suffixes, *(torch.from_numpy(part).to(device) for part in joined))


def _reach(wanted_T: np.ndarray) -> int:
    found = np.flatnonzero(wanted_T)
    return int(found[-1]) + 1 if len(found) else 0
