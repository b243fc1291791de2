"""The decoder of any other causal model, for packed rows: transformers' own, with our attention and adapted layers."""

import inspect
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from torch import Tensor, nn
from transformers import AttentionInterface

from workers.engine.adapters.layout import Group, Shape
from workers.engine.backends.attention_layer import AttentionLayer
from workers.engine.backends.backend import Backend
from workers.engine.decoder.adapted_layers import AdaptedLayers
from workers.engine.decoder.adapted_linear import AdaptedLinear
from workers.engine.decoder.forward_pass import ForwardPass
from workers.engine.decoder.windows import window_of

ATTENTION = "celerity"
# Arguments of an attention function that have no effect here, since sequences are packed and nothing is dropped out.
WITHOUT_EFFECT = {
    "dropout", "is_causal", "position_ids", "use_cache", "cache_position", "output_router_logits", "output_attentions",
}  # fmt: skip

# The pass that is running, which transformers does not pass on to its layers.
_running: ContextVar[ForwardPass] = ContextVar("running")


class TransformersStack:
    """Changes the model: its adapted linear layers become our own, each a group of its own.

    Raises:
        ValueError: the decoder takes no positions, or has no attention that can be replaced.
    """

    def __init__(self, model: Any, decoder: Any, adapted: AdaptedLayers, backend: Backend) -> None:
        if "position_ids" not in inspect.signature(decoder.forward).parameters:
            raise ValueError(f"{type(decoder).__name__} takes no position_ids, so that sequences cannot be packed")
        self.groups = tuple(_adapt(model, name, group, backend) for group, name in enumerate(adapted.linears))
        model.set_attn_implementation(ATTENTION)
        self._decoder: nn.Module = decoder

    def __call__(self, forward_pass: ForwardPass) -> Tensor:
        """Hidden states [T, D] after the last norm."""
        token = _running.set(forward_pass)
        try:
            hidden_1TD: Tensor = self._decoder(
                input_ids=forward_pass.tokens_T[None], position_ids=forward_pass.positions_T[None], use_cache=False
            ).last_hidden_state
        finally:
            _running.reset(token)
        return hidden_1TD[0]


class LoraLinear(nn.Module):
    """Takes the place of a linear layer of the model."""

    def __init__(self, adapted: AdaptedLinear) -> None:
        super().__init__()
        self._adapted = adapted

    def forward(self, x: Tensor) -> Tensor:
        """Of the pass's T rows, in their order: [1, T, inputs] or [T, inputs]."""
        forward_pass = _running.get()
        rows, x_TI = len(forward_pass.tokens_T), x.flatten(0, -2)
        if len(x_TI) != rows or (x.ndim == 3 and len(x) != 1):
            raise ValueError(f"the model feeds an adapted layer {list(x.shape[:-1])} rows for {rows} tokens")
        return self._adapted(x_TI, forward_pass).unflatten(0, x.shape[:-1])


def _adapt(model: nn.Module, name: str, group: int, backend: Backend) -> Group:
    layer = model.get_submodule(name)
    assert isinstance(layer, nn.Linear)
    adapted = LoraLinear(AdaptedLinear(backend.linear(layer.weight, layer.bias), group, backend))
    model.set_submodule(name, adapted)
    return Group((Shape(name, layer.in_features, layer.out_features),))


def _attend(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **arguments: Any,
) -> tuple[Tensor, None]:
    """Called by the model's layers with [1, heads, T, head size]; the mask is in our attention."""
    if attention_mask is not None:
        raise ValueError("its attention has a mask of its own, which is not supported")
    window = window_of(module.config, module.layer_idx)
    _refuse_unknown(arguments, window)
    layer = AttentionLayer(
        module.layer_idx, query.shape[-1] ** -0.5 if scaling is None else scaling, window, softcap, s_aux
    )
    q, k, v = (part[0].transpose(0, 1) for part in (query, key, value))
    return _running.get().attention(layer, q, k, v).contiguous()[None], None


def _refuse_unknown(arguments: Mapping[str, Any], window: int | None) -> None:
    """Raises ValueError for an argument that would change attention and is not supported."""
    unknown = {name: value for name, value in arguments.items() if value is not None and name not in WITHOUT_EFFECT}
    if unknown.pop("sliding_window", window) != window:
        raise ValueError(
            f"a layer has a window of {arguments['sliding_window']} tokens, where its config says {window}"
        )
    if unknown:
        raise ValueError(f"its attention has {', '.join(sorted(unknown))}, which is not supported")


AttentionInterface.register(ATTENTION, _attend)
