"""The parts of a model that know its vocabulary: the embedding, and the head that makes logits of a hidden state."""

from typing import Any

from torch import Tensor, nn
from torch.nn.functional import embedding

from workers.engine.backends.backend import Backend, FrozenLinear, FrozenProduct
from workers.engine.backends.softcap import capped, softcap_derivative

# Names in configurations: a logit is multiplied by the first kind, divided by the second and capped by the third.
MULTIPLIERS = ("logit_scale", "output_multiplier")
DIVISORS = ("logits_scaling",)
CAPS = ("final_logit_softcapping", "logits_soft_cap")


class Head:
    """Logits c tanh(s (W h + b) / c), with a scale s and a cap c where the model has them (Cohere's logit_scale,
    Granite's logits_scaling; Gemma 2, arXiv:2408.00118), in the model's dtype."""

    def __init__(
        self, linear: FrozenLinear, backend: Backend, scale: float = 1.0, softcap: float | None = None
    ) -> None:
        self.linear, self.backend, self._scale, self._softcap = linear, backend, scale, softcap
        self.outputs, self.is_packed = linear.outputs, linear.is_packed

    @classmethod
    def of(cls, model: Any, backend: Backend) -> "Head":
        """Of a Hugging Face model. Raises ValueError when it has no linear head."""
        linear, config = model.get_output_embeddings(), model.config.get_text_config()
        if not isinstance(linear, nn.Linear):
            raise ValueError(f"its logits come from {type(linear).__name__}, not from a linear layer")
        scale = 1.0
        for names, power in ((MULTIPLIERS, 1), (DIVISORS, -1)):
            for name in names:
                scale *= (getattr(config, name, None) or 1.0) ** power
        caps = [getattr(config, name, None) for name in CAPS]
        softcap = next((cap for cap in caps if cap), None)
        return cls(backend.linear(linear.weight, linear.bias), backend, scale, softcap)

    def product(self, hidden_ND: Tensor) -> Tensor:
        """Logits [N, V], outside of autograd."""
        logits_NV = self.linear.product(hidden_ND)
        if self._scale != 1.0:
            logits_NV *= self._scale
        return capped(logits_NV, self._softcap)

    def derivative(self, logits_NV: Tensor) -> Tensor | float | None:
        """Elementwise, of the logits by the product with W; None where they are that product."""
        if self._softcap is not None:
            return softcap_derivative(logits_NV, self._softcap).mul_(self._scale)
        return None if self._scale == 1.0 else self._scale

    def transposed(self) -> FrozenProduct:
        """As FrozenLinear's: from the gradient by the product with W to that by the hidden states."""
        return self.linear.transposed()

    def dense(self) -> Tensor:
        """W [V, D]: a copy, where it is packed."""
        return self.linear.dense()


class Embedding:
    """Of a Hugging Face model. Where its head is the same matrix, and packed, it is read from there."""

    def __init__(self, model: Any, head: Head) -> None:
        weight_VD = model.base_model.embed_tokens.weight
        is_tied = weight_VD.data_ptr() == model.get_output_embeddings().weight.data_ptr()
        self._tied = head.linear if is_tied and head.is_packed else None
        # A copy, like all that is kept: the original may be a view of the whole file in memory.
        self._weight_VD = None if self._tied else weight_VD.detach().clone()

    def __call__(self, tokens_T: Tensor) -> Tensor:
        """[T] -> [T, D]"""
        if self._tied:
            return self._tied.rows(tokens_T)
        assert self._weight_VD is not None
        return embedding(tokens_T, self._weight_VD)
