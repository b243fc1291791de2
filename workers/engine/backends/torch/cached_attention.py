"""Attention of tokens that go on from what a cache holds, by torch's operations."""

from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention

from workers.engine.backends.attention_layer import AttentionLayer
from workers.engine.backends.kv_cache import LENGTH_STEP, KvCache, Span
from workers.engine.backends.softcap import capped
from workers.engine.backends.torch.causal_attention import causal, softmax

# On a CPU the queries of a head of keys are filled up to multiples of this, so that the kernel's buffers are aligned
# whichever thread computes a row, and its sums have one order.
QUERY_STEP = 8


class TorchSpanAttention:
    """Spans of several rows one after the other; what comes before each is in the cache."""

    def __init__(self, cache: KvCache, spans: Sequence[Span], device: torch.device) -> None:
        self.cache, self._spans = cache, spans
        self._lengths = [span.length for span in spans]
        rows = [row for span in spans for row in [span.row] * span.length]
        self._rows_T = torch.tensor(rows, device=device)
        self.positions_T = torch.cat([torch.arange(span.start, span.stop, device=device) for span in spans])

    def __call__(self, layer: AttentionLayer, q_THD: Tensor, k_TKD: Tensor, v_TKD: Tensor) -> Tensor:
        self.cache.write(layer.index, self._rows_T, self.positions_T, k_TKD, v_TKD)
        new = (part.split(self._lengths) for part in (q_THD, k_TKD, v_TKD))
        return torch.cat([self._span(layer, span, *parts) for span, *parts in zip(self._spans, *new, strict=True)])

    def _span(self, layer: AttentionLayer, span: Span, q_LHD: Tensor, k_LKD: Tensor, v_LKD: Tensor) -> Tensor:
        if span.start == 0:
            return causal(layer, q_LHD, k_LKD, v_LKD)
        keys, values = self.cache.read(layer.index, slice(span.row, span.row + 1), span.stop)
        return causal(layer, q_LHD, keys[0].transpose(0, 1), values[0].transpose(0, 1))


class TorchDecodeAttention:
    """One token for each of the cache's first rows, in any order: the newest, at the end of its row's sequence.

    The query heads that share a head of keys are queries of one sequence to it, so that keys are read once and never
    copied. `order_B` says which token is that of row b.
    """

    def __init__(self, cache: KvCache, rows: Sequence[int], positions_T: Tensor) -> None:
        self.cache, self._rows, self.positions_T = cache, rows, positions_T
        self._rows_T = torch.tensor(rows, device=positions_T.device)
        self.order_B = self._rows_T.argsort()
        self._biases: dict[int | None, Tensor] = {}

    def __call__(self, layer: AttentionLayer, q_THD: Tensor, k_TKD: Tensor, v_TKD: Tensor) -> Tensor:
        self.cache.write(layer.index, self._rows_T, self.positions_T, k_TKD, v_TKD)
        rows, heads, size = q_THD.shape
        keys, values = self.cache.read(layer.index, slice(0, rows), self._length)
        q_BHD = q_THD if self._is_in_order else q_THD[self.order_B]
        q_BKGD = q_BHD.reshape(rows, keys.shape[1], heads // keys.shape[1], size)
        group, bias = q_BKGD.shape[2], self._bias(layer, q_THD.dtype)
        if q_BKGD.device.type == "cpu":
            q_BKGD = pad(q_BKGD, (0, 0, 0, -group % QUERY_STEP))
        if layer.is_plain:
            out_BKGD = scaled_dot_product_attention(q_BKGD, keys, values, attn_mask=bias, scale=layer.scale)
        else:
            out_BKGD = self._explicit(layer, q_BKGD, keys, values, bias)
        out_BHD = out_BKGD[:, :, :group].reshape(rows, heads, -1)
        return out_BHD if self._is_in_order else out_BHD[self._rows_T]

    @staticmethod
    def _explicit(layer: AttentionLayer, q_BKGD: Tensor, keys: Tensor, values: Tensor, bias: Tensor) -> Tensor:
        scores_BKGL = capped((q_BKGD.float() @ keys.float().mT).mul_(layer.scale), layer.softcap).add_(bias)
        sinks_BKG1 = None
        if layer.sinks_H is not None:
            sinks_KG = layer.sinks_H.view(keys.shape[1], -1)
            filled_KG = pad(sinks_KG, (0, q_BKGD.shape[2] - sinks_KG.shape[1]))
            sinks_BKG1 = filled_KG[None, :, :, None].expand(len(q_BKGD), -1, -1, -1)
        return (softmax(scores_BKGL, sinks_BKG1) @ values.float()).to(q_BKGD.dtype)

    @cached_property
    def _is_in_order(self) -> bool:
        return list(self._rows) == sorted(self._rows)

    @cached_property
    def _lengths_B1(self) -> Tensor:
        return self.positions_T[self.order_B][:, None] + 1

    @cached_property
    def _length(self) -> int:
        # In steps, so that in bf16 a row's sums are the same to the bit beside shorter and longer ones.
        return -(-int(self._lengths_B1.max()) // LENGTH_STEP) * LENGTH_STEP

    def _bias(self, layer: AttentionLayer, dtype: torch.dtype) -> Tensor:
        """[B, 1, 1, length]: 0 where the key is seen, else -inf."""
        window = layer.window if layer.is_cut(self._length) else None
        if window not in self._biases:
            positions_L = torch.arange(self._length, device=self._lengths_B1.device)
            hidden_BL = positions_L >= self._lengths_B1
            if window is not None:
                hidden_BL |= positions_L < self._lengths_B1 - window
            bias_BL = torch.zeros(hidden_BL.shape, dtype=dtype, device=hidden_BL.device)
            self._biases[window] = bias_BL.masked_fill_(hidden_BL, float("-inf"))[:, None, None]
        return self._biases[window]
