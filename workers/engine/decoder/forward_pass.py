"""What a model runs at once: tokens of several sequences side by side, and how they belong together."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from torch import Tensor

from workers.engine.adapters.rows import AdapterRows
from workers.engine.backends.attention_layer import Attention
from workers.engine.backends.pass_adapters import PassAdapters, Stacked


@dataclass(frozen=True)
class ForwardPass:
    """Packed rows without padding.

    `tokens_T` and `positions_T` (each token's place in its own sequence) are int64. `adapter_rows` are disjoint; a row
    in none of them runs on the base model alone. `stacked` are the same adapters, for backends that can use them so.
    """

    tokens_T: Tensor
    positions_T: Tensor
    attention: Attention
    adapter_rows: Sequence[AdapterRows] = ()
    stacked: Stacked | None = None

    @cached_property
    def adapters(self) -> PassAdapters:
        return PassAdapters(len(self.tokens_T), self.adapter_rows, self.stacked)
