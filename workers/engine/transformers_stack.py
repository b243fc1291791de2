"""Any other causal model's decoder, for packed rows: transformers' own, with our attention and adapted layers in it."""

from contextvars import ContextVar
from typing import Any

from torch import Tensor, nn
from transformers import AttentionInterface

from workers.engine.adapter_layout import Group, Shape
from workers.engine.causal_attention import AttentionLayer
from workers.engine.forward_pass import ForwardPass
from workers.engine.frozen_linear import FrozenLinear
from workers.engine.lora import TARGETS, AdaptedLinear
from workers.engine.windows import window_of

ATTENTION = "celerity"

# What the layers look up: transformers hands them nothing of ours.
_running: ContextVar[ForwardPass] = ContextVar("running")


class TransformersStack:
    """Changes the model: its linear layers named in TARGETS become adapted ones, each a group of its own.

    Raises:
        ValueError: it has no such layers.
    """

    def __init__(self, model: Any) -> None:
        names = [name for name, module in model.named_modules() if _is_target(name, module)]
        if not names:
            raise ValueError(f"the model has no linear layer named {', '.join(TARGETS)}")
        self.groups = tuple(_adapt(model, name, group) for group, name in enumerate(names))
        model.set_attn_implementation(ATTENTION)
        self._decoder: nn.Module = model.base_model

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
    """An adapted layer where the model has a linear one."""

    def __init__(self, adapted: AdaptedLinear) -> None:
        super().__init__()
        self._adapted = adapted

    def forward(self, x_1TI: Tensor) -> Tensor:
        if x_1TI.ndim != 3 or len(x_1TI) != 1:
            raise ValueError("the model feeds an adapted layer other rows than its tokens, which cannot be told apart")
        return self._adapted(x_1TI[0], _running.get())[None]


def _is_target(name: str, module: nn.Module) -> bool:
    return isinstance(module, nn.Linear) and name.rpartition(".")[2] in TARGETS


def _adapt(model: nn.Module, name: str, group: int) -> Group:
    layer = model.get_submodule(name)
    assert isinstance(layer, nn.Linear)
    parent = model.get_submodule(name.rpartition(".")[0])
    setattr(parent, name.rpartition(".")[2], LoraLinear(AdaptedLinear(FrozenLinear(layer.weight, layer.bias), group)))
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
    **_: Any,
) -> tuple[Tensor, None]:
    """Called by the model's layers with [1, heads, T, head size]; the mask is in our attention."""
    assert attention_mask is None
    if softcap is not None or s_aux is not None:
        raise ValueError("its attention caps its scores or has sinks, which is not supported")
    layer = AttentionLayer(
        module.layer_idx, query.shape[-1] ** -0.5 if scaling is None else scaling,
        window_of(module.config, module.layer_idx),
    )  # fmt: skip
    q, k, v = (part[0].transpose(0, 1) for part in (query, key, value))
    return _running.get().attention(layer, q, k, v)[None], None


AttentionInterface.register(ATTENTION, _attend)
