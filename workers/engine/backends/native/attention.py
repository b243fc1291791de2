"""Attention by our own kernels: over the tokens of a pass, or from a cache."""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from workers.engine.backends.causal_attention import AttentionLayer
from workers.engine.backends.kv_cache import KvCache
from workers.engine.kernels.kernel import Kernel

# The kernels' numbers at once: head sizes are multiples of it, and their reads of peaks end on one.
SIMD_WIDTH = 16
# Further back than any token.
NO_WINDOW = 1 << 62

_shape = "nnnnxnpn"
_over_pass = Kernel("attention", "pnpnpnppn" + _shape)
_backward = Kernel("attention_backward", "pnpnpnpnppppn" + _shape)
_from_cache = Kernel("cached_attention", "pnpnpnppnp" + _shape)


def sequences_of(families: Iterable[tuple[int, Sequence[int]]]) -> Tensor:
    """What `over_pass` reads, int64 [sequences, 6]: of families as in SegmentAttention."""
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
    return torch.tensor(rows, dtype=torch.int64).view(-1, 6)


def sequences_in_cache(spans: Iterable[tuple[int, int, int]]) -> Tensor:
    """What `from_cache` reads: of spans one after the other, each its row and where it starts and stops in it."""
    rows: list[tuple[int, ...]] = []
    at = 0
    for index, (row, start, stop) in enumerate(spans):
        rows.append((at, stop - start, row, start, index, 0))
        at += stop - start
    return torch.tensor(rows, dtype=torch.int64).view(-1, 6)


def over_pass(sequences: Tensor, layer: AttentionLayer, q_THD: Tensor, k_TKD: Tensor, v_TKD: Tensor) -> Tensor:
    """[T, H, D of v]."""
    q, k, v = filled(q_THD), filled(k_TKD), filled(v_TKD)
    if torch.is_grad_enabled() and q.requires_grad:
        out: Tensor = _OverPass.apply(sequences, layer, q, k, v)
    else:
        out = _attended(sequences, layer, q, k, v, None)
    return out if v is v_TKD else out[..., : v_TKD.shape[-1]]


def from_cache(
    sequences: Tensor, layer: AttentionLayer, cache: KvCache, q_THD: Tensor, k_TKD: Tensor, v_TKD: Tensor
) -> Tensor:
    """[T, H, D of v]; the new keys and values are put into the cache."""
    q, k, v = filled(q_THD), filled(k_TKD), filled(v_TKD)
    out = q.new_empty(*q.shape[:2], v.shape[2])
    memory = [part for tensor in (q, k, v) for part in (tensor, tensor.stride(0))]
    held = cache.memory(layer.index, k, v)
    _from_cache(q.dtype, *memory, *held, held[0].shape[2], out, *_shape_of(sequences, layer, q, k, v))
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
        ctx: Any, sequences: Tensor, layer: AttentionLayer, q_THD: Tensor, k_TKD: Tensor, v_TKD: Tensor
    ) -> Tensor:
        peaks = torch.empty(2 * q_THD.shape[0] * q_THD.shape[1] + SIMD_WIDTH)
        ctx.sequences, ctx.layer = sequences, layer
        ctx.save_for_backward(q_THD, k_TKD, v_TKD, peaks)
        return _attended(sequences, layer, q_THD, k_TKD, v_TKD, peaks)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, peaks = ctx.saved_tensors
        slopes = [torch.empty(part.shape, dtype=part.dtype) for part in (q, k, v)]
        memory = [part for tensor in (q, k, v, filled(grads[0])) for part in (tensor, tensor.stride(0))]
        _backward(q.dtype, *memory, *slopes, peaks, len(q), *_shape_of(ctx.sequences, ctx.layer, q, k, v))
        return None, None, *slopes


def _attended(
    sequences: Tensor, layer: AttentionLayer, q: Tensor, k: Tensor, v: Tensor, peaks: Tensor | None
) -> Tensor:
    out = q.new_empty(*q.shape[:2], v.shape[2])
    memory = [part for tensor in (q, k, v) for part in (tensor, tensor.stride(0))]
    _over_pass(q.dtype, *memory, out, peaks, len(q), *_shape_of(sequences, layer, q, k, v))
    return out


def _shape_of(sequences: Tensor, layer: AttentionLayer, q: Tensor, k: Tensor, v: Tensor) -> tuple[object, ...]:
    window = layer.window or NO_WINDOW
    return q.shape[1], k.shape[1], q.shape[2], v.shape[2], layer.scale, window, sequences, len(sequences)
