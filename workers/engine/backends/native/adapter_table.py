"""The adapters of a pass as the product's kernel reads them."""

from collections.abc import Iterator

import numpy as np
import torch

from workers.engine.adapters.rows import AdapterRows
from workers.engine.backends.native.packed_adapter import PackedAdapter
from workers.engine.backends.pass_adapters import PassAdapters
from workers.engine.kernels.packed_linear import ADAPTER_ROWS, base_alone


class AdapterTable:
    """Laid out once for all groups of layers, for their products or, in `backward`, for the gradients by their inputs.
    Rows in no adapter's are the base model's alone. In `backward` rows with dropout stop halfway, before its mask."""

    def __init__(self, adapters: PassAdapters, dtype: torch.dtype, backward: bool) -> None:
        parts = list(_parts(adapters))
        # Held, so that the memory at the table's addresses is not freed.
        self._adapters = [
            rows.adapter.low_rank.layout(PackedAdapter, dtype, backward) if rows else None for _, _, rows in parts
        ]
        groups = max((len(adapter.groups) for adapter in self._adapters if adapter), default=0)
        self._table_GN = np.zeros((groups, len(parts)), ADAPTER_ROWS)
        self._base_alone = base_alone(adapters.length)
        for place, ((start, stop, rows), adapter) in enumerate(zip(parts, self._adapters, strict=True)):
            part_G = self._table_GN[:, place]
            if adapter:
                part_G[:] = adapter.adapter_rows
            part_G["start"], part_G["stop"] = start, stop
            if rows and rows.dropout and backward:
                part_G["b_inputs"] = 0

    def whole(self, groups: int) -> np.ndarray:
        """ADAPTER_ROWS of all groups, [groups, N]."""
        if not len(self._table_GN):
            self._table_GN = np.repeat(self._base_alone[None], groups, 0)
        return self._table_GN

    def of(self, group: int) -> np.ndarray:
        """ADAPTER_ROWS of one group, [N]."""
        return self._table_GN[group] if len(self._table_GN) else self._base_alone


def _parts(adapters: PassAdapters) -> Iterator[tuple[int, int, AdapterRows | None]]:
    """All rows of the pass in order: from, to, and whose."""
    length, end = adapters.length, 0
    for start, stop, rows in sorted(
        ((*_bounds(rows, length), rows) for rows in adapters.rows), key=lambda part: part[0]
    ):
        if end < start:
            yield end, start, None
        yield start, stop, rows
        end = stop
    if end < length:
        yield end, length, None


def _bounds(rows: AdapterRows, length: int) -> tuple[int, int]:
    start, stop, _ = (rows.rows or slice(None)).indices(length)
    return start, stop
