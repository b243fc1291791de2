"""Attention by our own kernels: over the tokens of a pass, or from a cache."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from workers.engine.backends.attention_layer import AttentionLayer
from workers.engine.backends.kv_cache import KvCache, Span
from workers.engine.backends.torch.attention import TorchAttention
from workers.engine.backends.torch.cached_attention import TorchDecodeAttention, TorchSpanAttention
from workers.engine.kernels.binding import Kernel
from workers.engine.kernels.interface import record

# The numbers of a vector: head sizes are multiples of it, and as many are read after the last of the peaks.
SIMD_WIDTH = 16
# Further back than any token.
NO_WINDOW = 1 << 62

_SEQUENCE = record("Sequence")

_attention, _attention_backward = Kernel("attention"), Kernel("attention_backward")
_cached_attention = Kernel("cached_attention")


class NativeAttention(TorchAttention):
    """By our kernel for layers that are plain, by torch's operations for others."""

    def __init__(self, families: Sequence[tuple[int, Sequence[int]]]) -> None:
        super().__init__(families)
        self._sequences = _sequences_of(families)

    def __call__(self, layer: AttentionLayer, q_THD: Tensor, k_TKD: Tensor, v_TKD: Tensor) -> Tensor:
        if layer.is_plain:
            return over_pass(self._sequences, layer, q_THD, k_TKD, v_TKD)
        return super().__call__(layer, q_THD, k_TKD, v_TKD)


class NativeSpanAttention(TorchSpanAttention):
    """As NativeAttention."""

    def __init__(self, cache: KvCache, spans: Sequence[Span], device: torch.device) -> None:
        super().__init__(cache, spans, device)
        self.sequences = _sequences_in_cache(spans)

    def __call__(self, layer: AttentionLayer, q_THD: Tensor, k_TKD: Tensor, v_TKD: Tensor) -> Tensor:
        if layer.is_plain:
            return from_cache(self.sequences, layer, self.cache, q_THD, k_TKD, v_TKD)
        return super().__call__(layer, q_THD, k_TKD, v_TKD)


class NativeDecodeAttention(TorchDecodeAttention):
    """As NativeAttention."""

    def __init__(self, cache: KvCache, rows: Sequence[int], positions_T: Tensor) -> None:
        super().__init__(cache, rows, positions_T)
        places = zip(rows, positions_T.tolist(), strict=True)
        self.sequences = _sequences_in_cache(Span(row, position, position + 1) for row, position in places)

    def __call__(self, layer: AttentionLayer, q_THD: Tensor, k_TKD: Tensor, v_TKD: Tensor) -> Tensor:
        if layer.is_plain:
            return from_cache(self.sequences, layer, self.cache, q_THD, k_TKD, v_TKD)
        return super().__call__(layer, q_THD, k_TKD, v_TKD)


def _sequences_of(families: Iterable[tuple[int, Sequence[int]]]) -> np.ndarray:
    """What `over_pass` reads, of families as Backend.attention has them."""
    rows: list[tuple[int, ...]] = []
    start = 0
    for prefix, suffixes in families:
        before, leader = start, len(rows)
        if prefix:
            rows.append((start, prefix, start, 0, leader, len(suffixes)))
            start += prefix
        for length in suffixes:
            rows.append((start, length, before, prefix, leader if prefix else len(rows), 0))
            start += length
    return np.array(rows, _SEQUENCE)


def _sequences_in_cache(spans: Iterable[Span]) -> np.ndarray:
    """What `from_cache` reads, of spans one after the other."""
    rows: list[tuple[int, ...]] = []
    at = 0
    for index, span in enumerate(spans):
        rows.append((at, span.length, span.row, span.start, index, 0))
        at += span.length
    return np.array(rows, _SEQUENCE)


def over_pass(sequences: np.ndarray, layer: AttentionLayer, q_THD: Tensor, k_TKD: Tensor, v_TKD: Tensor) -> Tensor:
    """[T, H, D of v]."""
    q, k, v = filled(q_THD), filled(k_TKD), filled(v_TKD)
    if torch.is_grad_enabled() and q.requires_grad:
        out: Tensor = _OverPass.apply(sequences, layer, q, k, v)
    else:
        out = _attended(sequences, layer, q, k, v, None)
    return out if v is v_TKD else out[..., : v_TKD.shape[-1]]


def from_cache(
    sequences: np.ndarray, layer: AttentionLayer, cache: KvCache, q_THD: Tensor, k_TKD: Tensor, v_TKD: Tensor
) -> Tensor:
    """[T, H, D of v]; the new keys and values are put into the cache."""
    q, k, v = filled(q_THD), filled(k_TKD), filled(v_TKD)
    out = q.new_empty(*q.shape[:2], v.shape[2])
    keys, values = cache.memory(layer.index, k, v)
    sizes = _sizes(layer, q, k, v)
    _cached_attention(
        q.dtype, q=q, k=k, v=v, keys=keys, values=values, capacity=keys.shape[2], out=out, sequences=sequences, **sizes
    )
    return out if v is v_TKD else out[..., : v_TKD.shape[-1]]


def filled(x_THD: Tensor) -> Tensor:
    """As the kernels read it: heads one after the other, filled up with zeros to a multiple of SIMD_WIDTH."""
    size = x_THD.shape[-1]
    if size % SIMD_WIDTH:
        return pad(x_THD, (0, -size % SIMD_WIDTH))
    _, head_stride, stride = x_THD.stride()
    return x_THD if head_stride == size and stride == 1 else x_THD.contiguous()


class _OverPass(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, sequences: np.ndarray, layer: AttentionLayer, q_THD: Tensor, k_TKD: Tensor, v_TKD: Tensor
    ) -> Tensor:
        peaks = torch.empty(2 * q_THD.shape[0] * q_THD.shape[1] + SIMD_WIDTH)
        ctx.sequences, ctx.layer = sequences, layer
        ctx.save_for_backward(q_THD, k_TKD, v_TKD, peaks)
        return _attended(sequences, layer, q_THD, k_TKD, v_TKD, peaks)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, peaks = ctx.saved_tensors
        q_grad, k_grad, v_grad = (torch.empty(part.shape, dtype=part.dtype) for part in (q, k, v))
        _attention_backward(
            q.dtype, q=q, k=k, v=v, grad=filled(grads[0]), q_grad=q_grad, k_grad=k_grad, v_grad=v_grad, peaks=peaks,
            tokens=len(q), sequences=ctx.sequences, **_sizes(ctx.layer, q, k, v),
        )  # fmt: skip
        return None, None, q_grad, k_grad, v_grad


def _attended(
    sequences: np.ndarray, layer: AttentionLayer, q: Tensor, k: Tensor, v: Tensor, peaks: Tensor | None
) -> Tensor:
    out = q.new_empty(*q.shape[:2], v.shape[2])
    sizes = _sizes(layer, q, k, v)
    _attention(q.dtype, q=q, k=k, v=v, out=out, peaks=peaks, tokens=len(q), sequences=sequences, **sizes)
    return out


def _sizes(layer: AttentionLayer, q: Tensor, k: Tensor, v: Tensor) -> dict[str, float]:
    return {
        "heads": q.shape[1], "kv_heads": k.shape[1], "size": q.shape[2], "value_size": v.shape[2],
        "scale": layer.scale, "window": layer.window or NO_WINDOW,
    }  # fmt: skip
