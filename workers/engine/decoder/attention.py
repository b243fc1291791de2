"""Attention over packed rows: which tokens of a pass see which."""

from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from workers.engine.backends.causal_attention import AttentionLayer, causal
from workers.engine.backends.native.attention import over_pass, sequences_of
from workers.engine.kernels.kernel import have_kernels


class Attention(Protocol):
    """What a model's layers call between their projections."""

    def __call__(self, layer: AttentionLayer, q_THD: Tensor, k_TKD: Tensor, v_TKD: Tensor) -> Tensor:
        """Of H query heads over K heads of keys and values, [T, H, D of v]."""


class SegmentAttention:
    """Families of sequences one after the other: a common prefix, then what each goes on with. Each sequence sees
    itself, causally."""

    def __init__(self, families: Sequence[tuple[int, Sequence[int]]]) -> None:
        """The length of each prefix, which may be 0, and of what goes on from it."""
        self._families = families
        self._lengths = [length for prefix, suffixes in families for length in (prefix, *suffixes)]

    @classmethod
    def whole(cls, lengths: Sequence[int]) -> "SegmentAttention":
        """Of sequences that have nothing in common."""
        return cls([(0, [length]) for length in lengths])

    def __call__(self, layer: AttentionLayer, q_THD: Tensor, k_TKD: Tensor, v_TKD: Tensor) -> Tensor:
        if layer.is_plain and have_kernels(q_THD.device, q_THD.dtype):
            return over_pass(self._sequences, layer, q_THD, k_TKD, v_TKD)
        return self._part_by_part(layer, q_THD, k_TKD, v_TKD)

    @cached_property
    def _sequences(self) -> np.ndarray:
        return sequences_of(self._families)

    def _part_by_part(self, layer: AttentionLayer, q_THD: Tensor, k_TKD: Tensor, v_TKD: Tensor) -> Tensor:
        parts = zip(*(part.split(self._lengths) for part in (q_THD, k_TKD, v_TKD)), strict=True)
        seen: list[Tensor] = []
        for prefix, suffixes in self._families:
            q, *before = next(parts)
            if prefix:
                seen.append(causal(layer, q, *before))
            for _ in suffixes:
                q, *own = next(parts)
                keys, values = (torch.cat(pair) for pair in zip(before, own, strict=True)) if prefix else own
                seen.append(causal(layer, q, keys, values))
        return torch.cat(seen)
