"""Attention over packed rows: which tokens of a pass see which."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention


@dataclass(frozen=True)
class AttentionLayer:
    """Number `index` of a model: scores are q k^T * scale; a token sees the last `window` ones, itself among them."""

    index: int
    scale: float
    window: int | None = None


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


def causal(layer: AttentionLayer, q_LHD: Tensor, k_MKD: Tensor, v_MKD: Tensor) -> Tensor:
    """[L, H, D] for the last L of M tokens."""
    length, keys = len(q_LHD), len(k_MKD)
    mask_LM = None if length == keys and not is_cut(layer, keys) else visible(layer, length, keys, q_LHD.device)
    q, k, v = (part.transpose(0, 1)[None] for part in (q_LHD, k_MKD, v_MKD))
    out = scaled_dot_product_attention(
        q, k, v, attn_mask=mask_LM, is_causal=mask_LM is None, scale=layer.scale, enable_gqa=True
    )
    return out[0].transpose(0, 1)


def is_cut(layer: AttentionLayer, length: int) -> bool:
    """Whether the window hides anything of a sequence of that length."""
    return layer.window is not None and layer.window < length


def visible(layer: AttentionLayer, length: int, keys: int, device: torch.device) -> Tensor:
    """Boolean [length, keys]: which keys the last `length` tokens see."""
    seen_LM = torch.ones(length, keys, dtype=torch.bool, device=device).tril(keys - length)
    return seen_LM if layer.window is None else seen_LM.triu(keys - length - layer.window + 1)
