"""What a model runs at once: tokens of several sequences side by side, and how they belong together."""

from dataclasses import dataclass

from torch import Tensor

from workers.engine.attention import Attention
from workers.engine.lora import Lora


@dataclass(frozen=True)
class ForwardPass:
    """Packed rows without padding.

    `tokens_T` and `positions_T` (each token's place in its own sequence) are int64. `routes` cover disjoint rows; a
    row on no route runs on the base model alone.
    """

    tokens_T: Tensor
    positions_T: Tensor
    attention: Attention
    routes: Lora = ()
