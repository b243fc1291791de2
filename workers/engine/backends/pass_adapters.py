"""The adapters of a forward pass."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from workers.engine.adapters.rows import AdapterRows
from workers.engine.backends.torch.stacked import StackedAdapters

T = TypeVar("T")


@dataclass(frozen=True)
class PassAdapters:
    """`rows` are disjoint parts of the pass's `length` rows; a row in none of them runs on the base model alone.
    `stacked` are the same adapters, for backends that can use them so."""

    length: int
    rows: Sequence[AdapterRows] = ()
    stacked: StackedAdapters | None = None
    _layouts: dict[Hashable, Any] = field(default_factory=dict)

    def layout(self, make: Callable[..., T], *key: Hashable) -> T:
        """`make(self, *key)`, made once for all layers."""
        if (make, key) not in self._layouts:
            self._layouts[make, key] = make(self, *key)
        made: T = self._layouts[make, key]
        return made
