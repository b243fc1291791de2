"""All layers of a Llama in one call, over tokens whose sequences a cache holds."""

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from workers.engine.backends.attention_layer import CachedAttention
from workers.engine.backends.backend import DecoderLayer
from workers.engine.backends.native.adapter_table import AdapterTable
from workers.engine.backends.native.attention import (
    NO_WINDOW,
    SIMD_WIDTH,
    NativeDecodeAttention,
    NativeSpanAttention,
)
from workers.engine.backends.native.linear import NativeLinear
from workers.engine.backends.pass_adapters import PassAdapters
from workers.engine.kernels.binding import Kernel
from workers.engine.kernels.interface import record

# Adapted products of a layer: q with k and v, out, gate with up, down.
GROUPS = 4

_LAYER = record("DecoderLayer")
_decoder_layers = Kernel("decoder_layers")


class NativeDecoderLayers:
    """Gives the bits that calling the operations one by one gives, in half the time for a sequence alone."""

    def __init__(self, layers: Sequence[DecoderLayer]) -> None:
        self._layers = layers
        first = layers[0]
        self._table = np.array([_element(layer) for layer in layers], _LAYER)
        self._kv_shape = (0, first.kv_heads, first.head_size)
        self._sizes: dict[str, float] = {
            "width": first.linears[0].inputs, "heads": first.heads, "kv_heads": first.kv_heads,
            "size": first.head_size, "inner": first.linears[3].inputs,
            "eps": next(iter(first.eps)), "scale": first.attention.scale,
        }  # fmt: skip

    @staticmethod
    def can_take(layers: Sequence[DecoderLayer]) -> bool:
        factors = {(eps, layer.attention.scale) for layer in layers for eps in layer.eps}
        return len(factors) == 1 and all(
            layer.head_size % SIMD_WIDTH == 0 and all(linear.is_packed for linear in layer.linears) for layer in layers
        )

    def __call__(
        self, x_TD: Tensor, cos_TC: Tensor, sin_TC: Tensor, adapters: PassAdapters, attention: CachedAttention
    ) -> Tensor:
        assert isinstance(attention, NativeSpanAttention | NativeDecodeAttention)
        like = x_TD.new_empty(self._kv_shape)
        memory = [attention.cache.memory(layer.attention.index, like, like) for layer in self._layers]
        layers = self._table.copy()
        layers["keys"] = [keys.data_ptr() for keys, _ in memory]
        layers["values"] = [values.data_ptr() for _, values in memory]
        adapter_rows = adapters.layout(AdapterTable, x_TD.dtype, False).whole(GROUPS * len(layers))
        _decoder_layers(
            x_TD.dtype, x=x_TD, length=len(x_TD), layers=layers, cos=cos_TC, sin=sin_TC, adapter_rows=adapter_rows,
            sequences=attention.sequences, capacity=memory[0][0].shape[2], **self._sizes,
        )  # fmt: skip
        return x_TD


def _element(layer: DecoderLayer) -> tuple[int, ...]:
    """Of _LAYER, without memory of a cache."""
    norms = [0 if weight_D is None else weight_D.data_ptr() for weight_D in layer.norms]
    packed = [linear.packed for linear in layer.linears if isinstance(linear, NativeLinear)]
    linears = [address for linear in packed for address in linear.addresses]
    return (*norms, *linears, layer.attention.window or NO_WINDOW, 0, 0)
