"""Keys and values of the sequences that decode together: one row each, at positions of its own."""

from dataclasses import dataclass

from torch import Tensor

from workers.engine.kernels.huge_pages import HugePages

# Memory is held for lengths that are multiples of this, and on a CPU attention goes over such lengths.
LENGTH_STEP = 64

Held = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Span:
    """Positions `start`..`stop` - 1 of the sequence in a row of the cache."""

    row: int
    start: int
    stop: int

    @property
    def length(self) -> int:
        return self.stop - self.start


class KvCache:
    """Keys and values [rows, heads, length, head size] of each layer, allocated ahead of the sequences in it.

    Rows 0..n-1 are in use, without gaps, so that a decode step reads plain views. Positions beyond a row's sequence
    hold zeros or that sequence's own leavings, never another's: a masked key still meets a weight of zero, and
    0 * NaN is NaN.
    """

    def __init__(self) -> None:
        self._layers: dict[int, Held] = {}
        self._rows = self._length = 0
        self._memory = HugePages()

    @property
    def bytes_per_token(self) -> int:
        """Of one position of one row, over all layers seen so far."""
        tensors = [part for held in self._layers.values() for part in held]
        return sum(part.shape[1] * part.shape[3] * part.element_size() for part in tensors)

    @property
    def capacity(self) -> tuple[int, int]:
        """Rows and length for which memory is held."""
        return self._rows, self._length

    def reserve(self, rows: int, length: int) -> None:
        """Makes room, in one go where several rows will join; what was held stays."""
        if rows <= self._rows and length <= self._length:
            return
        self._rows = max(rows, self._rows)
        self._length = max(-(-length // LENGTH_STEP) * LENGTH_STEP, self._length)
        self._memory = HugePages()
        self._layers = {index: self._allocated(*held, old=held) for index, held in self._layers.items()}

    def write(self, layer: int, rows_T: Tensor, positions_T: Tensor, k_TKD: Tensor, v_TKD: Tensor) -> None:
        """Puts token t's key and value at a position of a row, for which there is room."""
        for held, part in zip(self.memory(layer, k_TKD, v_TKD), (k_TKD, v_TKD), strict=True):
            held[rows_T, :, positions_T] = part

    def memory(self, layer: int, k_TKD: Tensor, v_TKD: Tensor) -> Held:
        """All that is held for a layer, for keys and values like these."""
        if layer not in self._layers:
            self._layers[layer] = self._allocated(k_TKD[:, :, None], v_TKD[:, :, None])
        return self._layers[layer]

    def read(self, layer: int, rows: slice, length: int) -> Held:
        """Views [rows, heads, length, head size] of what a layer has written."""
        keys, values = (held[rows, :, :length] for held in self._layers[layer])
        return keys, values

    def copy_prefix(self, source: int, target: int, length: int) -> None:
        """Row `target` begins with the first `length` positions of row `source`."""
        for layer in self._layers.values():
            for held in layer:
                held[target, :, :length] = held[source, :, :length]

    def remove_row(self, row: int, last: int) -> None:
        """Frees `row`; row `last`, the last in use, takes its place."""
        for layer in self._layers.values():
            for held in layer:
                if row != last:
                    held[row] = held[last]
                held[last] = 0

    def wipe_from(self, row: int) -> None:
        """Forgets what rows from `row` on hold."""
        for layer in self._layers.values():
            for held in layer:
                held[row:] = 0

    def clear(self) -> None:
        """Gives all memory back."""
        self._layers.clear()
        self._memory = HugePages()
        self._rows = self._length = 0

    def _allocated(self, *like: Tensor, old: tuple[Tensor, ...] = ()) -> Held:
        keys, values = (self._zeros(part, (self._rows, part.shape[1], self._length, part.shape[3])) for part in like)
        for new, held in zip((keys, values), old, strict=False):
            new[: held.shape[0], :, : held.shape[2]] = held
        return keys, values

    def _zeros(self, like: Tensor, shape: tuple[int, ...]) -> Tensor:
        return self._memory.zeros(shape, like.dtype) if like.device.type == "cpu" else like.new_zeros(shape)
