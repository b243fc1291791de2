"""The routes of a pass as the product's kernel reads them."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from workers.engine.kernels.packed_linear import FIELDS, base_alone
from workers.engine.routes import Route


class PackedRoutes:
    """Laid out once for all groups of layers; rows on no route are the base model's alone."""

    def __init__(self, routes: Sequence[Route], length: int, dtype: torch.dtype) -> None:
        spans = list(_spans(routes, length))
        # Held, so that what the addresses name is not freed.
        self._adapters = [route.adapter.operands.packed(dtype) if route else [] for _, _, route in spans]
        self._base_alone = base_alone(length)
        groups = max(map(len, self._adapters), default=0)
        self._tables_GNF = np.zeros((groups, len(spans), FIELDS), np.int64)
        for place, (start, stop, route) in enumerate(spans):
            self._tables_GNF[:, place, :2] = start, stop
            if route:
                self._tables_GNF[:, place, 2:] = route.adapter.operands.addresses(dtype)

    def table(self, group: int) -> np.ndarray:
        """[N, 6]: as `Route` in product.cpp."""
        return self._tables_GNF[group] if len(self._tables_GNF) else self._base_alone


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
