"""Which adapters act on which rows of a packed pass."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from torch import Tensor

from workers.engine.adapters.adapter import Adapter, Published
from workers.engine.adapters.dropout import Dropout

DropoutFunction = Callable[[Tensor, Dropout, int], Tensor]
"""A backend's `dropout`."""


@dataclass(frozen=True)
class AdapterRows:
    """The rows of a packed pass that an adapter acts on; None is all of them."""

    adapter: Adapter | Published
    rows: slice | None
    dropout: Dropout | None = None

    def of(self, x_TI: Tensor) -> Tensor:
        """Its rows of x, as a view."""
        return x_TI if self.rows is None else x_TI[self.rows]

    def apply_dropout(self, x_NI: Tensor, group: int, function: DropoutFunction) -> Tensor:
        """These rows with the mask of a group of layers; x itself where there is no dropout."""
        return x_NI if self.dropout is None else function(x_NI, self.dropout, group)


def grouped(adapters: Sequence[Adapter | Published]) -> list[int]:
    """The order of indices in which equal adapters are adjacent."""
    places: dict[Adapter | Published, int] = {}
    for adapter in adapters:
        places.setdefault(adapter, len(places))
    return sorted(range(len(adapters)), key=lambda index: places[adapters[index]])


def rows_of(adapters: Sequence[Adapter | Published], lengths: Sequence[int]) -> list[AdapterRows]:
    """Of segments one after the other, each of so many rows, equal adapters adjacent."""
    found: list[AdapterRows] = []
    start = 0
    for adapter, group in groupby(zip(adapters, lengths, strict=True), key=lambda pair: pair[0]):
        stop = start + sum(length for _, length in group)
        found.append(AdapterRows(adapter, slice(start, stop)))
        start = stop
    return found if len(found) > 1 else [AdapterRows(adapters[0], None)]
