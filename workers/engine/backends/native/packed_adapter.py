"""An adapter's matrices as the product's kernel reads them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate

import numpy as np
import torch
from torch import Tensor

from workers.engine.adapters.layout import Matrices
from workers.engine.kernels.binding import Kernel
from workers.engine.kernels.huge_pages import HugePages
from workers.engine.kernels.interface import record
from workers.engine.kernels.packed_linear import ADAPTER_ROWS, PackedLinear
from workers.engine.kernels.panels import PANEL, inputs_per_step

HALF = PANEL // 2

_BLOCK = record("AdapterBlock")
_pack_adapter = Kernel("pack_adapter")

Block = tuple[int, ...]
"""An element of _BLOCK."""


class Target:
    """A matrix [rows, inputs] in panels, zeros but for the blocks that are copied there. Where `narrow`, what is left
    after whole panels takes half a one if it fits."""

    def __init__(self, rows: int, inputs: int, dtype: torch.dtype, memory: HugePages, *, narrow: bool = False) -> None:
        step, rest = inputs_per_step(dtype), rows % PANEL
        self.rows, self.inputs, self._step = rows, _filled(inputs, step), step
        self._whole = rows - rest if narrow and rest <= HALF else _filled(rows, PANEL)
        self._memory = memory.zeros([max(self._whole, _filled(rows, HALF)), self.inputs], dtype)

    @property
    def address(self) -> int:
        return self._memory.data_ptr()

    def block(self, matrix: Tensor, row: int = 0, column: int = 0, *, is_scaled: bool = False) -> Block:
        place = (self.address, row, column, self.inputs, self._whole, int(is_scaled))
        return (matrix.data_ptr(), *matrix.stride(), *matrix.shape, *place)

    def linear(self) -> PackedLinear:
        return PackedLinear(self._memory.view(-1, self.inputs // self._step, PANEL, self._step), self.rows)


@dataclass(frozen=True)
class PackedGroup:
    """Two matrices one after the other, `columns` between them. The panels of `b` have `b.inputs` of these each, from
    `firsts` [panels] on: where several layers lie below each other, each reads its own."""

    a: Target
    b: Target
    firsts: Tensor
    columns: int
    blocks: Sequence[Block]

    @classmethod
    def forward(cls, group: Matrices, dtype: torch.dtype, memory: HugePages) -> "PackedGroup":
        """A and then the Bs, for a product."""
        (columns, inputs), outputs = group.A.shape, [len(b) for b in group.Bs]
        rank, rows = columns // len(outputs), list(accumulate(outputs, initial=0))
        is_apart = rank % inputs_per_step(dtype) == 0 and all(size % PANEL == 0 for size in outputs)
        a = Target(columns, inputs, dtype, memory, narrow=True)
        # Blocks that end inside a panel or a step: all of B, a block for each layer on its diagonal, zeros and all.
        b = Target(rows[-1], rank if is_apart else columns, dtype, memory)
        firsts = _firsts(tuple(outputs), rank) if is_apart else _firsts((rows[-1],), 0)
        blocks = [b.block(part, rows[i], 0 if is_apart else i * rank) for i, part in enumerate(group.Bs)]
        return cls(a, b, firsts, columns, [a.block(group.A, is_scaled=True), *blocks])

    @classmethod
    def backward(cls, group: Matrices, dtype: torch.dtype, memory: HugePages) -> "PackedGroup":
        """The Bs turned and then A turned, for the gradient by a product's input."""
        (columns, inputs), outputs = group.A.shape, [len(b) for b in group.Bs]
        rank, rows = columns // len(outputs), list(accumulate(outputs, initial=0))
        a = Target(columns, rows[-1], dtype, memory, narrow=True)
        b = Target(inputs, columns, dtype, memory)
        blocks = [a.block(part.T, i * rank, rows[i]) for i, part in enumerate(group.Bs)]
        return cls(a, b, _firsts((inputs,), 0), columns, [*blocks, b.block(group.A.T, is_scaled=True)])

    @property
    def adapter_rows(self) -> tuple[int, ...]:
        """An element of ADAPTER_ROWS, of no rows."""
        memory = (self.a.address, self.b.address, self.firsts.data_ptr())
        return (0, 0, _filled(self.columns, PANEL), self.columns, self.b.inputs, *memory)


class PackedAdapter:
    """Of all groups; `adapter_rows` has an element for each. Without weights before it follows any."""

    def __init__(self, matrices: Sequence[Matrices], scale: float, dtype: torch.dtype, backward: bool) -> None:
        memory, make = HugePages(), PackedGroup.backward if backward else PackedGroup.forward
        self._dtype, self._scale, self._version = dtype, scale, -1
        self.groups = [make(group, dtype, memory) for group in matrices]
        self.adapter_rows = np.array([group.adapter_rows for group in self.groups], ADAPTER_ROWS)
        self._blocks = np.array([block for group in self.groups for block in group.blocks], _BLOCK)

    def follow(self, version: int) -> None:
        """Has the weights as they are now, which are this version of them."""
        if self._version != version:
            _pack_adapter(self._dtype, blocks=self._blocks, scale=self._scale)
            self._version = version


def _filled(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


@cache
def _firsts(outputs: tuple[int, ...], rank: int) -> Tensor:
    panels_of = torch.tensor([-(-size // PANEL) for size in outputs])
    return torch.repeat_interleave(rank * torch.arange(len(outputs)), panels_of)
