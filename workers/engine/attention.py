"""Attention over packed rows: which tokens of a pass see which."""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from workers.engine.causal_attention import AttentionLayer, causal


class Attention(Protocol):
    """What a model's layers call between their projections."""

    def __call__(self, layer: AttentionLayer, q_THD: Tensor, k_TKD: Tensor, v_TKD: Tensor) -> Tensor:
        """Of H query heads over K heads of keys and values, [T, H, D of v]."""


class SegmentAttention:
    """Whole sequences of the given lengths one after the other: each sees itself, causally."""

    def __init__(self, lengths: Sequence[int]) -> None:
        self._lengths = list(lengths)

    def __call__(self, layer: AttentionLayer, q_THD: Tensor, k_TKD: Tensor, v_TKD: Tensor) -> Tensor:
        parts = (part.split(self._lengths) for part in (q_THD, k_TKD, v_TKD))
        return torch.cat([causal(layer, q, k, v) for q, k, v in zip(*parts, strict=True)])
