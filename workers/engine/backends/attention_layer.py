"""Attention as a model's layers call it between their projections."""

from dataclasses import dataclass
from typing import Protocol, TypeGuard

import torch
from torch import Tensor

from workers.engine.backends.kv_cache import KvCache


@dataclass(frozen=True)
class AttentionLayer:
    """Number `index` of a model: scores are q k^T * scale; a token sees the last `window` ones, itself among them.

    `softcap` c makes a score c tanh(score / c) (Gemma 2, arXiv:2408.00118). `sinks_H` are scores of a key per head that
    has no value: it takes weight from the others (gpt-oss, arXiv:2508.10925).
    """

    index: int
    scale: float
    window: int | None = None
    softcap: float | None = None
    sinks_H: Tensor | None = None

    @property
    def is_plain(self) -> bool:
        """Whether kernels that know softmax(q k^T * scale) v alone compute it."""
        return self.softcap is None and self.sinks_H is None

    def is_cut(self, length: int) -> bool:
        """Whether the window hides anything of a sequence of that length."""
        return self.window is not None and self.window < length

    def visible(self, start: int, stop: int, keys: int, device: torch.device) -> Tensor:
        """Boolean [stop - start, keys]: which of the first `keys` tokens those from `start` to `stop` - 1 see."""
        seen_LM = torch.ones(stop - start, keys, dtype=torch.bool, device=device).tril(start)
        return seen_LM if self.window is None else seen_LM.triu(start - self.window + 1)


class Attention(Protocol):
    """Of the tokens of one pass, each of which sees the tokens of its own sequence up to itself."""

    def __call__(self, layer: AttentionLayer, q_THD: Tensor, k_TKD: Tensor, v_TKD: Tensor) -> Tensor:
        """Of H query heads over K heads of keys and values, [T, H, D of v]."""


class CachedAttention(Attention, Protocol):
    """Of tokens that go on from what a cache holds, and that it holds from then on."""

    cache: KvCache
    positions_T: Tensor


def is_cached(attention: Attention) -> TypeGuard[CachedAttention]:
    return hasattr(attention, "cache")


class DecodeAttention(CachedAttention, Protocol):
    """`order_B` says which token is that of row b of the cache."""

    order_B: Tensor


def whole(lengths: list[int]) -> list[tuple[int, list[int]]]:
    """The families of sequences that have nothing in common."""
    return [(0, [length]) for length in lengths]
