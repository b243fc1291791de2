"""An adapter's matrices as the product's kernel reads them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from workers.engine.kernels.huge_pages import HugePages
from workers.engine.kernels.panels import PANEL, inputs_per_step, panels

HALF = PANEL // 2


@dataclass(frozen=True)
class PackedAdapter:
    """Of a group: `a` and `b` in panels, `columns` between them; the panels of `b` have `b_inputs` of these each, from
    `firsts` [panels] on."""

    a: Tensor
    b: Tensor
    firsts: Tensor
    columns: int
    b_inputs: int

    @property
    def addresses(self) -> tuple[int, ...]:
        """The end of a route in product.cpp."""
        width = -(-self.columns // PANEL) * PANEL
        return width, self.columns, self.b_inputs, self.a.data_ptr(), self.b.data_ptr(), self.firsts.data_ptr()


class PackedAdapters:
    """Of all groups; `addresses` [groups, 6]."""

    def __init__(self, groups: Iterable[tuple[Tensor, Tensor, Sequence[int]]]) -> None:
        """Of each group `a_SI`, `b_OS` with a block for each layer on its diagonal, and the layers' outputs."""
        memory = HugePages()
        self._groups = [_packed(memory, *group) for group in groups]
        self.addresses = np.array([group.addresses for group in self._groups])


def _packed(memory: HugePages, a_SI: Tensor, b_OS: Tensor, outputs: Sequence[int]) -> PackedAdapter:
    rank, step = len(a_SI) // len(outputs), inputs_per_step(a_SI.dtype)
    if rank % step or any(size % PANEL for size in outputs):
        # Blocks that end inside a panel or a step: all of B, zeros and all.
        outputs, rank = [len(b_OS)], -(-len(a_SI) // step) * step
        b_OS = pad(b_OS, (0, rank - len(a_SI)))
    blocks = [block[:, i * rank : (i + 1) * rank] for i, block in enumerate(b_OS.split(list(outputs)))]
    b = memory.copy(torch.cat([panels(block) for block in blocks]))
    return PackedAdapter(memory.copy(_a_panels(a_SI)), b, _firsts(tuple(outputs), rank), len(a_SI), rank)


def _a_panels(a_SI: Tensor) -> Tensor:
    """Flat; what is left after whole panels takes half a one, where it fits."""
    whole = len(a_SI) // PANEL * PANEL if len(a_SI) % PANEL <= HALF else len(a_SI)
    parts = [panels(a_SI[:whole]).flatten(), panels(a_SI[whole:], HALF).flatten()]
    return torch.cat([part for part in parts if len(part)])


@cache
def _firsts(outputs: tuple[int, ...], rank: int) -> Tensor:
    panels_of = torch.tensor([-(-size // PANEL) for size in outputs])
    return torch.repeat_interleave(rank * torch.arange(len(outputs)), panels_of)
