"""The adapters of a forward pass."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from torch import Tensor

from workers.engine.adapters.rows import AdapterRows

T = TypeVar("T")


class Stacked(Protocol):
    """The adapters of a pass whose rows are all some adapter's, as one product for all of them."""

    def low_rank(self, x_TI: Tensor, group: int) -> Tensor:
        """scale * B A x of each row's own A and B, [T, outputs], in the dtype that products are computed in."""


@dataclass(frozen=True)
class PassAdapters:
    """`rows` are disjoint parts of the pass's `length` rows; a row in none of them runs on the base model alone.
    `stacked` are the same adapters, for backends that can use them so."""

    length: int
    rows: Sequence[AdapterRows] = ()
    stacked: Stacked | None = None
    _layouts: dict[Hashable, Any] = field(default_factory=dict)

    def layout(self, make: Callable[..., T], *key: Hashable) -> T:
        """`make(self, *key)`, made once for all layers."""
        if (make, key) not in self._layouts:
            self._layouts[make, key] = make(self, *key)
        made: T = self._layouts[make, key]
        return made
