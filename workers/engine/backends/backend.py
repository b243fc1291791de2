"""What a backend computes. A base model has one, chosen when it is loaded (choice.py)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from domain.sample import SamplingParams
from workers.engine.adapters.dropout import Dropout
from workers.engine.backends.attention_layer import Attention, AttentionLayer, CachedAttention, DecodeAttention
from workers.engine.backends.kv_cache import KvCache, Span
from workers.engine.backends.pass_adapters import PassAdapters


class FrozenProduct(Protocol):
    """x -> x W^T, or for the transposed matrix grad -> grad W."""

    def product(self, x_MI: Tensor, plus_MO: Tensor | None = None) -> Tensor:
        """[M, inputs] -> [M, outputs]; `plus` is added before the sum is rounded to the dtype of x."""


class FrozenLinear(FrozenProduct, Protocol):
    """y = x W^T + b with a W [outputs, inputs] that never changes, held in whatever layout its backend reads; outside
    of autograd. A row of the result has the same bits in any batch."""

    inputs: int
    outputs: int
    # Whether W is held in panels: rows of it can be read, and adapters take part in its product at little cost.
    is_packed: bool

    def dense(self) -> Tensor:
        """W: a copy, where it is held in another layout."""

    def rows(self, index_N: Tensor) -> Tensor:
        """Rows of W, [N, inputs]."""

    def transposed(self) -> FrozenProduct:
        """For gradients: [M, outputs] -> [M, inputs]. It may be a copy of W, little beside the products of the hundreds
        of rows that training has."""

    def adapted(
        self, x_TI: Tensor, adapters: PassAdapters, group: int, plus_TO: Tensor | None
    ) -> tuple[Tensor, Sequence[Tensor]]:
        """W x + b + plus + scale * B A dropout(x), A and B the group's of each row's adapter; and for each adapter
        scale * A dropout(x) [its rows, columns of its A], or nothing where autograd is off."""

    def adapted_backward(
        self, grad_TO: Tensor, adapters: PassAdapters, group: int, of_input: bool
    ) -> tuple[Tensor | None, Sequence[Tensor]]:
        """The gradients by x, where asked for, and by A dropout(x) of each adapter's rows."""


class Rotate(Protocol):
    def __call__(self, x_THD: Tensor, back: bool = False, out: Tensor | None = None) -> Tensor:
        """Rotates each head's vector by its token's angles, or back; into `out` where given."""


@dataclass(frozen=True)
class DecoderLayer:
    """Of a Llama's layer: `norms` are the fp32 weights of its input's, of the MLP's, of q's and of k's (None where it
    has none), `linears` those of q with k and v, out, gate with up, and down."""

    norms: tuple[Tensor, Tensor, Tensor | None, Tensor | None]
    eps: frozenset[float]
    linears: tuple[FrozenLinear, ...]
    attention: AttentionLayer
    heads: int
    kv_heads: int
    head_size: int


class DecoderLayers(Protocol):
    def __call__(
        self, x_TD: Tensor, cos_TC: Tensor, sin_TC: Tensor, adapters: PassAdapters, attention: CachedAttention
    ) -> Tensor:
        """The last layer's output [T, D], which may take the memory of x; keys and values go to the cache."""


class Backend(Protocol):
    """The operations of a model's layers. All are outside of autograd, but for attention over a pass; T tokens, H query
    heads, K heads of keys and values, sizes D and C = D / 2 of a head."""

    name: str

    def linear(self, weight_OI: Tensor, bias_O: Tensor | None = None) -> FrozenLinear:
        """Lays W out once, in a copy."""

    def outer(self, u_NS: Tensor, v_NC: Tensor, factor: float = 1.0) -> Tensor:
        """factor * u^T v, fp32 [S, C]; on a CPU no sum is rounded to the dtype of u and v."""

    def dropout(self, x_NI: Tensor, dropout: Dropout, group: int) -> Tensor:
        """x times the group's mask, rounded once."""

    def rms_norm(self, x: Tensor, weight_D: Tensor, eps: float) -> Tensor:
        """x / sqrt(mean(x^2) + eps) * weight over the last dimension of x, [T, D] or [T, H, D], in fp32, rounded once
        to the dtype of x; the weight is fp32."""

    def rms_norm_backward(self, x: Tensor, grad: Tensor, weight_D: Tensor, eps: float) -> Tensor:
        """The gradient by x, from that by the result."""

    def rotary(self, cos_TC: Tensor, sin_TC: Tensor) -> Rotate:
        """Rotation by each token's angles, of which a vector's two halves are the pairs."""

    def swiglu(self, gate_up_TF: Tensor) -> Tensor:
        """silu(gate) * up, of gate and up side by side: [T, 2 F] -> [T, F]."""

    def swiglu_backward(self, gate_up_TF: Tensor, grad_TF: Tensor) -> Tensor:
        """The gradient by gate and up, from that by the result."""

    def attention(self, families: Sequence[tuple[int, Sequence[int]]]) -> Attention:
        """Over the tokens of a pass, differentiable. A family is the length of a common prefix, which may be 0, and the
        lengths of the sequences that go on from it; its tokens lie in that order, family after family."""

    def span_attention(self, cache: KvCache, spans: Sequence[Span], device: torch.device) -> CachedAttention:
        """Of spans one after the other; what comes before each of them is in the cache."""

    def decode_attention(self, cache: KvCache, rows: Sequence[int], positions_T: Tensor) -> DecodeAttention:
        """Of one token for each of the cache's first rows, in the order of `rows`: the newest of its sequence."""

    def decoder_layers(self, layers: Sequence[DecoderLayer]) -> DecoderLayers | None:
        """All layers in one call over cached sequences, with the bits that the single operations give; None where the
        backend has no such kernel for them."""

    def target_logprobs(
        self, logits_CV: Tensor, targets_C: Tensor, computes_grad: bool = False
    ) -> tuple[Tensor, Tensor]:
        """fp32 logprobs of the targets and entropies (nats), each [C], of softmax(logits).

        Where asked the logits become d logprob / d logits = onehot(target) - softmax(logits), rounded after the
        difference, which is small where the target is likely.
        """

    def draw(
        self, logits_BV: Tensor, params: Sequence[SamplingParams], uniforms: Sequence[float]
    ) -> tuple[Tensor, Tensor]:
        """Tokens int64 [B] and their raw logprobs fp32 [B]: temperature, then top-k, then top-p, then the inverse CDF
        at one uniform of [0, 1).

        A logprob is log-softmax in fp32 of the raw logits over the whole vocabulary, whatever filters chose the token.
        A row depends on its own parameters and uniform only; one whose logits are not finite gets some token and a
        logprob that is not finite.
        """
