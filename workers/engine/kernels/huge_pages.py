"""Memory in pages of 2 MiB, where the system has them: what is read from end to end comes a third faster."""

import mmap
from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor

BLOCK_BYTES = 64 << 20
# Of a cache line, which is also that of the widest vectors.
ALIGNMENT = 64


class HugePages:
    """Tensors one after the other in blocks, each freed with the last tensor in it. Pages that nothing was written to
    take no memory."""

    def __init__(self) -> None:
        self._block: mmap.mmap | None = None
        self._used = 0

    def copy(self, x: Tensor) -> Tensor:
        """A contiguous copy of x."""
        return self.zeros(x.shape, x.dtype).copy_(x)

    def zeros(self, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        count = prod(shape)
        size = count * dtype.itemsize
        if self._block is None or self._used + size > len(self._block):
            self._block, self._used = _block(max(size, BLOCK_BYTES)), 0
        place = torch.frombuffer(self._block, dtype=dtype, count=count, offset=self._used)
        self._used += -(-size // ALIGNMENT) * ALIGNMENT
        return place.view(*shape)


def _block(size: int) -> mmap.mmap:
    if not hasattr(mmap, "MADV_HUGEPAGE"):
        return mmap.mmap(-1, size)
    # Private: the pages of shared memory are another matter to the system.
    block = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    block.madvise(mmap.MADV_HUGEPAGE)
    return block
