"""Torch's operations as a backend."""

from collections.abc import Sequence

import torch
from torch import Tensor

from domain.sample import SamplingParams
from workers.engine.adapters.dropout import Dropout
from workers.engine.backends.attention_layer import Attention, CachedAttention, DecodeAttention
from workers.engine.backends.backend import DecoderLayer, DecoderLayers, FrozenLinear, Rotate
from workers.engine.backends.kv_cache import KvCache, Span
from workers.engine.backends.torch import elementwise
from workers.engine.backends.torch.attention import TorchAttention
from workers.engine.backends.torch.cached_attention import TorchDecodeAttention, TorchSpanAttention
from workers.engine.backends.torch.draw import draw
from workers.engine.backends.torch.dropout import dropped_out
from workers.engine.backends.torch.linear import TorchLinear
from workers.engine.backends.torch.logprobs import target_logprobs
from workers.engine.backends.torch.products import outer


class TorchBackend:
    """On any device and in any dtype: the reference that other backends are tested against."""

    name = "torch"

    def linear(self, weight_OI: Tensor, bias_O: Tensor | None = None) -> FrozenLinear:
        return TorchLinear(weight_OI, bias_O, self.dropout)

    def outer(self, u_NS: Tensor, v_NC: Tensor, factor: float = 1.0) -> Tensor:
        return outer(u_NS, v_NC, factor)

    def dropout(self, x_NI: Tensor, dropout: Dropout, group: int) -> Tensor:
        return dropped_out(x_NI, dropout, group)

    def rms_norm(self, x: Tensor, weight_D: Tensor, eps: float) -> Tensor:
        return elementwise.rms_norm(x, weight_D, eps)

    def rms_norm_backward(self, x: Tensor, grad: Tensor, weight_D: Tensor, eps: float) -> Tensor:
        return elementwise.rms_norm_backward(x, grad, weight_D, eps)

    def rotary(self, cos_TC: Tensor, sin_TC: Tensor) -> Rotate:
        return elementwise.Rotary(cos_TC, sin_TC)

    def swiglu(self, gate_up_TF: Tensor) -> Tensor:
        return elementwise.swiglu(gate_up_TF)

    def swiglu_backward(self, gate_up_TF: Tensor, grad_TF: Tensor) -> Tensor:
        return elementwise.swiglu_backward(gate_up_TF, grad_TF)

    def attention(self, families: Sequence[tuple[int, Sequence[int]]]) -> Attention:
        return TorchAttention(families)

    def span_attention(self, cache: KvCache, spans: Sequence[Span], device: torch.device) -> CachedAttention:
        return TorchSpanAttention(cache, spans, device)

    def decode_attention(self, cache: KvCache, rows: Sequence[int], positions_T: Tensor) -> DecodeAttention:
        return TorchDecodeAttention(cache, rows, positions_T)

    def decoder_layers(self, layers: Sequence[DecoderLayer]) -> DecoderLayers | None:  # noqa: ARG002 - has no such kernel
        return None

    def target_logprobs(
        self, logits_CV: Tensor, targets_C: Tensor, computes_grad: bool = False
    ) -> tuple[Tensor, Tensor]:
        return target_logprobs(logits_CV, targets_C, computes_grad)

    def draw(
        self, logits_BV: Tensor, params: Sequence[SamplingParams], uniforms: Sequence[float]
    ) -> tuple[Tensor, Tensor]:
        return draw(logits_BV, params, uniforms)
