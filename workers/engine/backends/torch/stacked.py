"""Many adapters in one decode step: their matrices stacked, so that a group of layers takes two batched products
however many there are."""

from collections.abc import Sequence
from itertools import groupby

import torch
from torch import Tensor

from workers.engine.adapters.adapter import Adapter, Published
from workers.engine.adapters.low_rank import LowRankWeights
from workers.engine.backends.torch.operands import LoraOperands, Operand
from workers.engine.backends.torch.products import computed_in

# Of the stacked copies; with more adapters than that the products are one after the other.
MOST_STACKED_BYTES = 1 << 30


class StackedAdapters:
    """Rows of several adapters, each adapter's adjacent; made for one step from a stack that later steps use too."""

    def __init__(self, stack: Sequence[Operand], slots: Sequence[int], lengths: Sequence[int], device: torch.device):
        """`lengths[i]` rows for the adapter in slot `slots[i]` of the stack."""
        self._stack = stack
        self._count, self._widest = len(stack[0].a_SI), max(lengths)
        rows_NM = torch.zeros(self._count, self._widest, dtype=torch.int64)
        places, start = [], 0
        for slot, length in zip(slots, lengths, strict=True):
            rows_NM[slot, :length] = torch.arange(start, start + length)
            places.append(slot * self._widest + torch.arange(length))
            start += length
        self._rows = rows_NM.flatten().to(device)
        self._places_T = torch.cat(places).to(device)

    def low_rank(self, x_TI: Tensor, group: int) -> Tensor:
        operand = self._stack[group]
        x_NMI = x_TI[self._rows].view(self._count, self._widest, -1).to(operand.a_SI.dtype)
        low_NMO = (x_NMI @ operand.a_SI.mT) @ operand.b_OS.mT
        return low_NMO.flatten(0, 1)[self._places_T]


class StackedAdaptersCache:
    """Keeps the last stack as long as it holds the adapters that are asked for, and half of it is in use."""

    def __init__(self) -> None:
        self._versions: list[tuple[LowRankWeights, int]] = []
        self._stack: list[Operand] = []

    def clear(self) -> None:
        """Gives the memory back."""
        self._versions, self._stack = [], []

    def stack(
        self, adapters: Sequence[Adapter | Published], dtype: torch.dtype, device: torch.device
    ) -> StackedAdapters | None:
        """For rows with these adapters, equal ones adjacent; None for a single adapter, or for too many bytes."""
        counts = [(adapter.low_rank, len(list(rows))) for adapter, rows in groupby(adapters)]
        wanted = [(weights, weights.version) for weights, _ in counts]
        itemsize = computed_in(device, dtype).itemsize
        if len(wanted) == 1 or sum(weights.size for weights, _ in wanted) * itemsize > MOST_STACKED_BYTES:
            self.clear()
            return None
        if not self._serves(wanted):
            self.clear()
            self._versions, self._stack = (
                wanted,
                _stacked([weights.layout(LoraOperands, dtype).all() for weights, _ in wanted]),
            )
        slots = [self._versions.index(version) for version in wanted]
        return StackedAdapters(self._stack, slots, [length for _, length in counts], device)

    def _serves(self, wanted: list[tuple[LowRankWeights, int]]) -> bool:
        """Sequences end one by one, so that a stack is not made again for each."""
        return all(version in self._versions for version in wanted) and 2 * len(wanted) > len(self._versions)


def _stacked(adapters: Sequence[Sequence[Operand]]) -> list[Operand]:
    """One of each group, with a first dimension over the adapters; smaller ranks are filled up with zeros."""
    return [_one([operands[group] for operands in adapters]) for group in range(len(adapters[0]))]


def _one(operands: Sequence[Operand]) -> Operand:
    widest = max(len(operand.a_SI) for operand in operands)
    first = operands[0]
    a_NSI = first.a_SI.new_zeros(len(operands), widest, first.a_SI.shape[1])
    b_NOS = first.b_OS.new_zeros(len(operands), len(first.b_OS), widest)
    for index, operand in enumerate(operands):
        a_NSI[index, : len(operand.a_SI)] = operand.a_SI
        b_NOS[index, :, : operand.b_OS.shape[1]] = operand.b_OS
    return Operand(a_NSI, b_NOS)
