"""The routes of a pass as the product's kernel reads them."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from workers.engine.adapters.rows import Route
from workers.engine.backends.native.packed_adapter import PackedAdapter
from workers.engine.kernels.packed_linear import ADAPTER_ROWS, base_alone


class PackedRoutes:
    """Laid out once for all groups of layers, for their products or for the `slopes` of what they read. Rows on no
    route are the base model's alone. For slopes a route with dropout stops halfway, before its mask."""

    def __init__(self, routes: Sequence[Route], length: int, dtype: torch.dtype, slopes: bool) -> None:
        spans = list(_spans(routes, length))
        # Held, so that what the addresses name is not freed.
        self._adapters = [
            route.adapter.low_rank.layout(PackedAdapter, dtype, slopes) if route else None for _, _, route in spans
        ]
        groups = max((len(adapter.groups) for adapter in self._adapters if adapter), default=0)
        self._table_GN = np.zeros((groups, len(spans)), ADAPTER_ROWS)
        self._base_alone = base_alone(length)
        for place, ((start, stop, route), adapter) in enumerate(zip(spans, self._adapters, strict=True)):
            part_G = self._table_GN[:, place]
            if adapter:
                part_G[:] = adapter.adapter_rows
            part_G["start"], part_G["stop"] = start, stop
            if route and route.dropout and slopes:
                part_G["b_inputs"] = 0

    def whole(self, groups: int) -> np.ndarray:
        """ADAPTER_ROWS of all groups, [groups, N]."""
        if not len(self._table_GN):
            self._table_GN = np.repeat(self._base_alone[None], groups, 0)
        return self._table_GN

    def table(self, group: int) -> np.ndarray:
        """ADAPTER_ROWS of one group, [N]."""
        return self._table_GN[group] if len(self._table_GN) else self._base_alone


def _spans(routes: Sequence[Route], length: int) -> Iterator[tuple[int, int, Route | None]]:
    """All rows in order, from, to, and on which route."""
    end = 0
    for start, stop, route in sorted(((*_bounds(route, length), route) for route in routes), key=lambda span: span[0]):
        if end < start:
            yield end, start, None
        yield start, stop, route
        end = stop
    if end < length:
        yield end, length, None


def _bounds(route: Route, length: int) -> tuple[int, int]:
    start, stop, _ = (route.rows or slice(None)).indices(length)
    return start, stop
