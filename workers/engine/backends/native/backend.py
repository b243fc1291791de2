"""Our kernels for CPUs as a backend."""

from collections.abc import Sequence

import torch
from torch import Tensor

from domain.sample import SamplingParams
from workers.engine.adapters.dropout import Dropout
from workers.engine.backends.attention_layer import Attention, CachedAttention, DecodeAttention
from workers.engine.backends.backend import DecoderLayer, DecoderLayers, FrozenLinear, Rotate
from workers.engine.backends.kv_cache import KvCache, Span
from workers.engine.backends.native.attention import NativeAttention, NativeDecodeAttention, NativeSpanAttention
from workers.engine.backends.native.decoder_layers import NativeDecoderLayers
from workers.engine.backends.native.linear import NativeLinear
from workers.engine.backends.torch.linear import TorchLinear
from workers.engine.kernels import functional
from workers.engine.kernels.packed_linear import PackedLinear


class NativeBackend:
    """In fp32 and bf16, computed in fp32 and rounded once. What the kernels cannot take, torch's operations do: layers
    whose sizes do not fit their blocks, and attention whose scores are capped or compete with a sink."""

    name = "native"

    def linear(self, weight_OI: Tensor, bias_O: Tensor | None = None) -> FrozenLinear:
        weight_OI, bias_O = weight_OI.detach(), None if bias_O is None else bias_O.detach()
        if PackedLinear.can_take(weight_OI):
            return NativeLinear(PackedLinear.of(weight_OI, bias_O), self.dropout)
        return TorchLinear(weight_OI, bias_O, self.dropout)

    def outer(self, u_NS: Tensor, v_NC: Tensor, factor: float = 1.0) -> Tensor:
        return functional.outer(u_NS, v_NC, factor)

    def dropout(self, x_NI: Tensor, dropout: Dropout, group: int) -> Tensor:
        return functional.dropout(
            x_NI, dropout.samples_N, dropout.positions_N,
            key=dropout.key, group=group, least=dropout.least, factor=dropout.factor,
        )  # fmt: skip

    def rms_norm(self, x: Tensor, weight_D: Tensor, eps: float) -> Tensor:
        return functional.rms_norm(x, weight_D, eps)

    def rms_norm_backward(self, x: Tensor, grad: Tensor, weight_D: Tensor, eps: float) -> Tensor:
        return functional.rms_norm_backward(x, grad, weight_D, eps)

    def rotary(self, cos_TC: Tensor, sin_TC: Tensor) -> Rotate:
        def rotate(x_THD: Tensor, back: bool = False, out: Tensor | None = None) -> Tensor:
            return functional.rotary(x_THD, cos_TC, sin_TC, back, out)

        return rotate

    def swiglu(self, gate_up_TF: Tensor) -> Tensor:
        return functional.swiglu(gate_up_TF)

    def swiglu_backward(self, gate_up_TF: Tensor, grad_TF: Tensor) -> Tensor:
        return functional.swiglu_backward(gate_up_TF, grad_TF)

    def attention(self, families: Sequence[tuple[int, Sequence[int]]]) -> Attention:
        return NativeAttention(families)

    def span_attention(self, cache: KvCache, spans: Sequence[Span], device: torch.device) -> CachedAttention:
        return NativeSpanAttention(cache, spans, device)

    def decode_attention(self, cache: KvCache, rows: Sequence[int], positions_T: Tensor) -> DecodeAttention:
        return NativeDecodeAttention(cache, rows, positions_T)

    def decoder_layers(self, layers: Sequence[DecoderLayer]) -> DecoderLayers | None:
        return NativeDecoderLayers(layers) if NativeDecoderLayers.can_take(layers) else None

    def target_logprobs(
        self, logits_CV: Tensor, targets_C: Tensor, computes_grad: bool = False
    ) -> tuple[Tensor, Tensor]:
        return functional.target_logprobs(logits_CV, targets_C, computes_grad)

    def draw(
        self, logits_BV: Tensor, params: Sequence[SamplingParams], uniforms: Sequence[float]
    ) -> tuple[Tensor, Tensor]:
        vocabulary = logits_BV.shape[1]
        choices = [
            (one.temperature, one.top_k if one.top_k > 0 else vocabulary, one.top_p, uniform)
            for one, uniform in zip(params, uniforms, strict=True)
        ]
        return functional.draw(logits_BV, choices)
