"""What a model runs at once: tokens of several sequences side by side, and how they belong together."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from workers.engine.adapters.rows import Route
from workers.engine.backends.native.packed_rows import PackedRoutes
from workers.engine.backends.stacked import Crowd
from workers.engine.decoder.attention import Attention


@dataclass(frozen=True)
class ForwardPass:
    """Packed rows without padding.

    `tokens_T` and `positions_T` (each token's place in its own sequence) are int64. `routes` cover disjoint rows; a
    row on no route runs on the base model alone. `crowd` is the same adapters stacked, for layers that can use it.
    """

    tokens_T: Tensor
    positions_T: Tensor
    attention: Attention
    routes: Sequence[Route] = ()
    crowd: Crowd | None = None
    _packed: dict[tuple[torch.dtype, bool], PackedRoutes] = field(default_factory=dict)

    def packed_routes(self, dtype: torch.dtype, slopes: bool = False) -> PackedRoutes:
        """The routes as our kernel reads them, the same for all layers."""
        if (dtype, slopes) not in self._packed:
            self._packed[dtype, slopes] = PackedRoutes(self.routes, len(self.tokens_T), dtype, slopes)
        return self._packed[dtype, slopes]
