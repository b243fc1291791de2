"""Which adapters act on which rows of a packed pass."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from torch import Tensor

from workers.engine.adapters.adapter import Adapter, Published
from workers.engine.adapters.dropout import Dropout


@dataclass(frozen=True)
class Route:
    """Which rows of a packed pass an adapter acts on; None is all of them."""

    adapter: Adapter | Published
    rows: slice | None
    dropout: Dropout | None = None

    def of(self, x_TI: Tensor) -> Tensor:
        """Its rows of x."""
        return x_TI if self.rows is None else x_TI[self.rows]

    def dropped(self, x_NI: Tensor, group: int) -> Tensor:
        """What a group of layers reads of its rows, or a gradient of that, dropped out where asked."""
        return x_NI if self.dropout is None else self.dropout.of(x_NI, group)


def grouped(adapters: Sequence[Adapter | Published]) -> list[int]:
    """The order of indices in which equal adapters stand together."""
    places: dict[Adapter | Published, int] = {}
    for adapter in adapters:
        places.setdefault(adapter, len(places))
    return sorted(range(len(adapters)), key=lambda index: places[adapters[index]])


def routes_of(adapters: Sequence[Adapter | Published], lengths: Sequence[int]) -> list[Route]:
    """Of segments one after the other, equal adapters together."""
    routes: list[Route] = []
    start = 0
    for adapter, group in groupby(zip(adapters, lengths, strict=True), key=lambda pair: pair[0]):
        stop = start + sum(length for _, length in group)
        routes.append(Route(adapter, slice(start, stop)))
        start = stop
    return routes if len(routes) > 1 else [Route(adapters[0], None)]
