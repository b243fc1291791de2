"""Attention over the tokens of a pass by torch's operations."""

from collections.abc import Sequence

import torch
from torch import Tensor

from workers.engine.backends.attention_layer import AttentionLayer
from workers.engine.backends.torch.causal_attention import causal


class TorchAttention:
    """Families of sequences one after the other: a common prefix, then the sequences that go on from it."""

    def __init__(self, families: Sequence[tuple[int, Sequence[int]]]) -> None:
        self._families = families
        self._lengths = [length for prefix, suffixes in families for length in (prefix, *suffixes)]

    def __call__(self, layer: AttentionLayer, q_THD: Tensor, k_TKD: Tensor, v_TKD: Tensor) -> Tensor:
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
