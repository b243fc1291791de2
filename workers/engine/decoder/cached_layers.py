"""All layers of a Llama in one call, over tokens whose sequences a cache holds."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from workers.engine.backends.causal_attention import AttentionLayer
from workers.engine.backends.frozen_linear import FrozenLinear
from workers.engine.backends.kv_cache import KvCache
from workers.engine.backends.native.attention import NO_WINDOW, SIMD_WIDTH
from workers.engine.backends.native.packed_rows import PackedRoutes
from workers.engine.decoder.rms_norm import RmsNorm
from workers.engine.decoder.rotary import Rotation
from workers.engine.kernels.kernel import Kernel

_layers = Kernel("layers", "pnpnnnnnnxxppnpnpnn")


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
    def addresses(self) -> list[int]:
        """The beginning of a layer in layers.cpp."""
        norms = [norm.weight_D.data_ptr() if norm else 0 for norm in self.norms]
        linears = [address for product in self.products if product.packed for address in product.packed.addresses]
        return [*norms, *linears, self.attention.window or NO_WINDOW]


class CachedLayers:
    """Gives the bits that calling the operations one by one gives, in half the time for a sequence alone."""

    def __init__(self, layers: Sequence[LayerParts]) -> None:
        self._layers = layers
        first = layers[0]
        self._addresses = [layer.addresses for layer in layers]
        width, inner = first.products[0].inputs, first.products[3].inputs
        self._sizes = (width, first.heads, first.kv_heads, first.head_size, inner)
        self._factors = (first.norms[0].eps, first.attention.scale)

    @staticmethod
    def can_take(layers: Sequence[LayerParts]) -> bool:
        factors = {(norm.eps, layer.attention.scale) for layer in layers for norm in layer.norms if norm}
        return len(factors) == 1 and all(layer.is_packed for layer in layers)

    def __call__(
        self, x_TD: Tensor, rotation: Rotation, routes: PackedRoutes, cache: KvCache, sequences: Tensor
    ) -> Tensor:
        """[T, D] of the last layer, which takes the place of `x_TD`; new keys and values are put into the cache."""
        _, _, kv_heads, size, _ = self._sizes
        like = x_TD.new_empty(0, kv_heads, size)
        held = [cache.memory(layer.attention.index, like, like) for layer in self._layers]
        table = torch.tensor(
            [[*row, *(part.data_ptr() for part in pair)] for row, pair in zip(self._addresses, held, strict=True)]
        )
        _layers(
            x_TD.dtype, x_TD, len(x_TD), table, len(table), *self._sizes, *self._factors, *rotation.tables,
            *routes.whole(4 * len(table)), sequences, len(sequences), held[0][0].shape[2],
        )  # fmt: skip
        return x_TD
