"""All layers of a Llama in one call, over tokens whose sequences a cache holds."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from workers.engine.backends.causal_attention import AttentionLayer
from workers.engine.backends.frozen_linear import FrozenLinear
from workers.engine.backends.kv_cache import KvCache
from workers.engine.backends.native.attention import NO_WINDOW, SIMD_WIDTH
from workers.engine.backends.native.packed_rows import PackedRoutes
from workers.engine.decoder.rms_norm import RmsNorm
from workers.engine.decoder.rotary import Rotation
from workers.engine.kernels.binding import Kernel
from workers.engine.kernels.interface import record

_LAYER = record("DecoderLayer")
_decoder_layers = Kernel("decoder_layers")


@dataclass(frozen=True)
class LayerParts:
    """Of a layer as in llama.py: `norms` of its input, of the MLP's, of q and of k (or None for these two);
    `products` q with k and v, out, gate with up, down."""

    norms: tuple[RmsNorm, RmsNorm, RmsNorm | None, RmsNorm | None]
    products: tuple[FrozenLinear, FrozenLinear, FrozenLinear, FrozenLinear]
    attention: AttentionLayer
    heads: int
    kv_heads: int
    head_size: int

    @property
    def is_packed(self) -> bool:
        return self.head_size % SIMD_WIDTH == 0 and all(product.packed for product in self.products)

    @property
    def addresses(self) -> tuple[int, ...]:
        """An element of _LAYER, without memory of a cache."""
        norms = [norm.weight_D.data_ptr() if norm else 0 for norm in self.norms]
        linears = [address for product in self.products if product.packed for address in product.packed.addresses]
        return (*norms, *linears, self.attention.window or NO_WINDOW, 0, 0)


class CachedLayers:
    """Gives the bits that calling the operations one by one gives, in half the time for a sequence alone."""

    def __init__(self, layers: Sequence[LayerParts]) -> None:
        self._layers = layers
        first = layers[0]
        self._table = np.array([layer.addresses for layer in layers], _LAYER)
        width, inner = first.products[0].inputs, first.products[3].inputs
        self._kv_shape = (0, first.kv_heads, first.head_size)
        self._sizes: dict[str, float] = {
            "width": width, "heads": first.heads, "kv_heads": first.kv_heads, "size": first.head_size, "inner": inner,
            "eps": first.norms[0].eps, "scale": first.attention.scale,
        }  # fmt: skip

    @staticmethod
    def can_take(layers: Sequence[LayerParts]) -> bool:
        factors = {(norm.eps, layer.attention.scale) for layer in layers for norm in layer.norms if norm}
        return len(factors) == 1 and all(layer.is_packed for layer in layers)

    def __call__(
        self, x_TD: Tensor, rotation: Rotation, routes: PackedRoutes, cache: KvCache, sequences: np.ndarray
    ) -> Tensor:
        """[T, D] of the last layer, which takes the place of `x_TD`; new keys and values are put into the cache."""
        like, (cos_TC, sin_TC) = x_TD.new_empty(self._kv_shape), rotation.tables
        held = [cache.memory(layer.attention.index, like, like) for layer in self._layers]
        layers = self._table.copy()
        layers["keys"] = [keys.data_ptr() for keys, _ in held]
        layers["values"] = [values.data_ptr() for _, values in held]
        _decoder_layers(
            x_TD.dtype, x=x_TD, length=len(x_TD), layers=layers, cos=cos_TC, sin=sin_TC,
            adapter_rows=routes.whole(4 * len(layers)), sequences=sequences, capacity=held[0][0].shape[2],
            **self._sizes,
        )  # fmt: skip
        return x_TD
