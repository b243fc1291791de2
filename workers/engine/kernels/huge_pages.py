"""Memory in pages of 2 MiB, where the system has them: see docs/decisions/0049-huge-pages.md."""

import mmap
import threading
from collections.abc import Sequence
from contextlib import suppress
from math import prod

import torch
from torch import Tensor

# Of a block. The first is small, so that a small adapter takes no page of 2 MiB; each is larger than the one before.
LEAST_BYTES, MOST_BYTES = 256 << 10, 64 << 20
# Of a cache line, which is also that of the widest vectors.
ALIGNMENT = 64


class HugePages:
    """Tensors one after the other in blocks, each freed with the last tensor in it."""

    def __init__(self) -> None:
        self._block: mmap.mmap | None = None
        self._used, self._next = 0, LEAST_BYTES
        # Engines load models in threads of their own.
        self._lock = threading.Lock()

    def copy(self, x: Tensor) -> Tensor:
        """A contiguous copy of x."""
        return self.zeros(x.shape, x.dtype).copy_(x)

    def zeros(self, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        count = prod(shape)
        with self._lock:
            block, offset = self._place(count * dtype.itemsize)
        return torch.frombuffer(block, dtype=dtype, count=count, offset=offset).view(*shape)

    def _place(self, size: int) -> tuple[mmap.mmap, int]:
        """A block, and where in it nobody else writes."""
        if self._block is None or self._used + size > len(self._block):
            self._block, self._used = _block(max(size, self._next)), 0
            self._next = min(8 * self._next, MOST_BYTES)
        offset, self._used = self._used, self._used + -(-size // ALIGNMENT) * ALIGNMENT
        return self._block, offset


def _block(size: int) -> mmap.mmap:
    if not hasattr(mmap, "MADV_HUGEPAGE"):
        return mmap.mmap(-1, size)
    # Private: the pages of shared memory are another matter to the system.
    block = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    # A kernel may be built without them.
    with suppress(OSError):
        block.madvise(mmap.MADV_HUGEPAGE)
    return block
