"""An adapter's matrices of one group as the product's kernel reads them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from workers.engine.kernels.panels import PANEL, panels


@dataclass(frozen=True)
class PackedAdapter:
    """`a` and `b` in panels, `columns` between them, filled up to `width`; `bounds` [panels of b, 2] says which of
    them are more than zeros in a panel of b."""

    a: Tensor
    b: Tensor
    bounds: Tensor
    width: int
    columns: int

    @property
    def addresses(self) -> tuple[int, int, int, int, int]:
        """The end of a route in product.cpp."""
        return self.width, self.columns, self.a.data_ptr(), self.b.data_ptr(), self.bounds.data_ptr()


class PackedAdapters:
    """Of all groups; `addresses` [groups, 5]."""

    def __init__(self, groups: Sequence[PackedAdapter]) -> None:
        self._groups = groups
        self.addresses = np.array([group.addresses for group in groups])


def packed_adapter(a_SI: Tensor, b_OS: Tensor, outputs: Sequence[int]) -> PackedAdapter:
    """`b_OS` has on its diagonal a block for each layer, of so many outputs."""
    width = -(-len(a_SI) // PANEL) * PANEL
    bounds = _bounds(tuple(outputs), len(a_SI) // len(outputs))
    return PackedAdapter(panels(a_SI), panels(pad(b_OS, (0, width - len(a_SI)))), bounds, width, len(a_SI))


@cache
def _bounds(outputs: tuple[int, ...], rank: int) -> Tensor:
    layer_O = torch.repeat_interleave(torch.arange(len(outputs)), torch.tensor(outputs))
    layers = [(int(part.min()), int(part.max())) for part in layer_O.split(PANEL)]
    # From an even number to an even one: bf16 is multiplied in pairs, and beyond the last there are zeros.
    return torch.tensor([[first * rank // 2 * 2, -(-(last + 1) * rank // 2) * 2] for first, last in layers])
