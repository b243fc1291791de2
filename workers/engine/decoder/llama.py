"""The decoder of Llama and similar models, for packed rows: fewer and larger products than transformers' own."""

from typing import Any

import torch
from torch import Tensor, nn

from workers.engine.adapters.layout import Group, Shape
from workers.engine.backends.attention_layer import AttentionLayer, is_cached
from workers.engine.backends.backend import Backend, DecoderLayer, FrozenLinear
from workers.engine.decoder.adapted_linear import AdaptedLinear
from workers.engine.decoder.forward_pass import ForwardPass
from workers.engine.decoder.head import Embedding, Head
from workers.engine.decoder.rms_norm import RmsNorm
from workers.engine.decoder.rotary import Rotation
from workers.engine.decoder.swiglu import swiglu
from workers.engine.decoder.windows import window_of

# Models of other names that use these classes are served too.
CLASSES = {"LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"}

QKV, OUT, GATE_UP, DOWN = ("q_proj", "k_proj", "v_proj"), ("o_proj",), ("gate_proj", "up_proj"), ("down_proj",)


class Llama:
    """Moves the weights out of a Hugging Face model, layer by layer, so that they are never in memory twice.

    Each layer's q, k and v are one product, and so are gate and up. Qwen2's biases, Qwen3's norms of q and k and
    Mistral's window are the only differences between the families.
    """

    def __init__(self, model: Any, head: Head, backend: Backend) -> None:
        """`head` is the model's, which is also its embedding where the two are tied."""
        decoder, config = model.base_model, model.config
        self._embedding = Embedding(model, head)
        self._rotary = decoder.rotary_emb
        self._norm, self._backend = _norm(decoder.norm, backend), backend
        self._layers: list[Layer] = []
        self.groups: tuple[Group, ...] = ()
        for index, layer in enumerate(decoder.layers):
            groups = _groups(layer, f"model.layers.{index}")
            self._layers.append(Layer(layer, config, index, len(self.groups), backend))
            self.groups += groups
            decoder.layers[index] = nn.Identity()
        self._cached_layers = backend.decoder_layers([layer.parts for layer in self._layers])

    @staticmethod
    def can_take(model: Any) -> bool:
        rope = getattr(model.config, "rope_parameters", None) or {}
        is_whole = rope.get("partial_rotary_factor", 1.0) == 1.0
        return type(model).__name__ in CLASSES and model.config.hidden_act == "silu" and is_whole

    def __call__(self, forward_pass: ForwardPass) -> Tensor:
        """Hidden states [T, D] after the last norm."""
        x_TD = self._embedding(forward_pass.tokens_T)
        rotation = self._rotation(x_TD, forward_pass.positions_T)
        attention = forward_pass.attention
        if self._cached_layers and is_cached(attention):
            angles = rotation.cos_TC, rotation.sin_TC
            return self._norm(self._cached_layers(x_TD, *angles, forward_pass.adapters, attention))
        for layer in self._layers:
            x_TD = layer(x_TD, rotation, forward_pass)
        return self._norm(x_TD)

    def _rotation(self, like: Tensor, positions_T: Tensor) -> Rotation:
        # Transformers returns each angle twice, once for each half of a vector.
        cos_TC, sin_TC = (part[0].chunk(2, -1)[0] for part in self._rotary(like, positions_T[None]))
        return Rotation(cos_TC, sin_TC, self._backend)


class Layer:
    """Attention and MLP, with pre-normalisation and residual connections."""

    def __init__(self, layer: Any, config: Any, index: int, first_group: int, backend: Backend) -> None:
        attention, mlp = layer.self_attn, layer.mlp
        self._head_size: int = attention.head_dim
        self._heads = attention.q_proj.out_features // self._head_size
        self._kv_heads = attention.k_proj.out_features // self._head_size
        self._attention = AttentionLayer(index, attention.scaling, window_of(config, index))
        self._backend = backend
        self._input_norm = _norm(layer.input_layernorm, backend)
        self._mlp_norm = _norm(layer.post_attention_layernorm, backend)
        self._q_norm, self._k_norm = (_optional_norm(attention, name, backend) for name in ("q_norm", "k_norm"))
        parts = [(attention, QKV), (attention, OUT), (mlp, GATE_UP), (mlp, DOWN)]
        products = [
            AdaptedLinear(_fused(*part, backend), first_group + place, backend) for place, part in enumerate(parts)
        ]
        self._qkv, self._out, self._gate_up, self._down = products

    @property
    def parts(self) -> DecoderLayer:
        norms = (self._input_norm, self._mlp_norm, self._q_norm, self._k_norm)
        q_norm, k_norm = (norm.weight_D if norm else None for norm in norms[2:])
        return DecoderLayer(
            (self._input_norm.weight_D, self._mlp_norm.weight_D, q_norm, k_norm),
            frozenset(norm.eps for norm in norms if norm),
            tuple(layer.base for layer in (self._qkv, self._out, self._gate_up, self._down)),
            self._attention,
            self._heads,
            self._kv_heads,
            self._head_size,
        )

    def __call__(self, x_TD: Tensor, rotation: Rotation, forward_pass: ForwardPass) -> Tensor:
        q, k, v = self._projected(self._input_norm(x_TD), rotation, forward_pass)
        seen_THD = forward_pass.attention(self._attention, q, k, v)
        x_TD = self._out(seen_THD.flatten(1), forward_pass, plus_TO=x_TD)
        gate_up_TF = self._gate_up(self._mlp_norm(x_TD), forward_pass)
        return self._down(swiglu(gate_up_TF, self._backend), forward_pass, plus_TO=x_TD)

    def _projected(self, x_TD: Tensor, rotation: Rotation, forward_pass: ForwardPass) -> tuple[Tensor, Tensor, Tensor]:
        qkv_THD = self._qkv(x_TD, forward_pass).view(len(x_TD), -1, self._head_size)
        if self._q_norm and self._k_norm:
            q, k, v = qkv_THD.split([self._heads, self._kv_heads, self._kv_heads], 1)
            return rotation(self._q_norm(q)), rotation(self._k_norm(k)), v
        return rotation.split(qkv_THD, self._heads, self._kv_heads)


def _groups(layer: Any, name: str) -> tuple[Group, ...]:
    parts = [(layer.self_attn, "self_attn", QKV), (layer.self_attn, "self_attn", OUT)]
    parts += [(layer.mlp, "mlp", GATE_UP), (layer.mlp, "mlp", DOWN)]
    return tuple(
        Group(tuple(_shape(getattr(module, each), f"{name}.{room}.{each}") for each in names))
        for module, room, names in parts
    )


def _shape(linear: Any, name: str) -> Shape:
    return Shape(name, linear.in_features, linear.out_features)


def _fused(module: Any, names: tuple[str, ...], backend: Backend) -> FrozenLinear:
    layers = [getattr(module, name) for name in names]
    biases = [layer.bias if layer.bias is not None else layer.weight.new_zeros(layer.out_features) for layer in layers]
    has_bias = any(layer.bias is not None for layer in layers)
    return backend.linear(torch.cat([layer.weight for layer in layers]), torch.cat(biases) if has_bias else None)


def _norm(module: Any, backend: Backend) -> RmsNorm:
    return RmsNorm(module.weight, module.variance_epsilon, backend)


def _optional_norm(attention: Any, name: str, backend: Backend) -> RmsNorm | None:
    return _norm(getattr(attention, name), backend) if hasattr(attention, name) else None
