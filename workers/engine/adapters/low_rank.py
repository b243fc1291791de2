"""An adapter's matrices as forward passes find them, and the layouts that are made of them to multiply with."""

from collections.abc import Hashable, Sequence
from typing import Any, Protocol, TypeVar

from torch import Tensor

from workers.engine.adapters.layout import Matrices


class Layout(Protocol):
    """A copy of the matrices in the form that some product reads."""

    def __init__(self, matrices: Sequence[Matrices], scale: float, *key: Any) -> None: ...

    def follow(self, version: int) -> None:
        """Has the weights as they are now, which are this version of them."""


L = TypeVar("L", bound=Layout)


class LowRankWeights:
    """The matrices of each group, views of `weights`; a layer's product adds scale * B A x. The fp32 weights stay the
    truth; a layout, which may be rounded to another dtype, is kept and made again when they have changed."""

    def __init__(self, weights: Tensor, matrices: Sequence[Matrices], scale: float) -> None:
        self._weights, self._matrices, self._scale = weights, matrices, scale
        self._layouts: dict[Hashable, Any] = {}

    @property
    def version(self) -> int:
        """Another one whenever the weights have changed."""
        return self._weights._version

    @property
    def size(self) -> int:
        """Elements of all matrices, with a group's Bs as the diagonal blocks of one."""
        return sum(m.A.numel() + len(m.A) * sum(len(b) for b in m.Bs) for m in self._matrices)

    def layout(self, of: type[L], *key: Hashable) -> L:
        """The weights as they are now in this layout; `key` is handed to its constructor."""
        if (of, key) not in self._layouts:
            self._layouts[of, key] = of(self._matrices, self._scale, *key)
        made: L = self._layouts[of, key]
        made.follow(self.version)
        return made
