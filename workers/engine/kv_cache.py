"""Keys and values of the sequences that decode together: one row each, at positions of its own."""

import torch
from torch import Tensor
from transformers.cache_utils import Cache

LENGTH_STEP = 64


class KvLayer:
    """Keys and values [rows, heads, length, head size] of one attention layer, allocated when first written."""

    def __init__(self) -> None:
        self.tensors: tuple[Tensor, ...] = ()

    def allocate(self, like: tuple[Tensor, ...], rows: int, length: int) -> None:
        """Grows to `rows` and `length`; what was held stays."""
        grown = tuple(part.new_zeros((rows, part.shape[1], length, part.shape[3])) for part in like)
        for new, old in zip(grown, self.tensors, strict=False):
            new[: old.shape[0], :, : old.shape[2]] = old
        self.tensors = grown


class KvCache(Cache):
    """A cache whose memory follows the sequences in it.

    Rows 0..n-1 are in use, without gaps, so that a decode step reads plain views. `place` says where the next
    forward pass writes. Positions beyond a row's sequence hold zeros or that sequence's own leavings, never
    another's: a masked key still meets a weight of zero, and 0 * NaN is NaN.
    """

    def __init__(self) -> None:
        super().__init__(layers=[])
        self._kv: dict[int, KvLayer] = {}
        self._rows = self._length = 0

    @property
    def bytes_per_token(self) -> int:
        """Of one position of one row, over all layers seen so far."""
        tensors = [part for layer in self._kv.values() for part in layer.tensors]
        return sum(part.shape[1] * part.shape[3] * part.element_size() for part in tensors)

    @property
    def capacity(self) -> tuple[int, int]:
        """Rows and length for which memory is held."""
        return self._rows, self._length

    def place(self, first_row: int, positions_BQ: Tensor, length: int) -> None:
        """The next pass writes row first_row + b at positions_BQ[b] and reads the first `length` positions."""
        rows = first_row + positions_BQ.shape[0]
        self.reserve(rows, length)
        self._rows_B1 = torch.arange(first_row, rows, device=positions_BQ.device)[:, None]
        self._slice = slice(first_row, rows)
        self._positions_BQ, self._read_length = positions_BQ, length

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: object, **__: object
    ) -> tuple[Tensor, Tensor]:
        """Writes [B, heads, Q, head size] where `place` said; the rows' keys and values up to its length."""
        layer = self._kv.setdefault(layer_idx, KvLayer())
        new = (key_states, value_states)
        if not layer.tensors:
            layer.allocate(new, self._rows, self._length)
        for held, part in zip(layer.tensors, new, strict=True):
            held[self._rows_B1, :, self._positions_BQ] = part.transpose(1, 2)
        keys, values = (held[self._slice, :, : self._read_length] for held in layer.tensors)
        return keys, values

    def copy_prefix(self, source: int, target: int, length: int) -> None:
        """Row `target` begins with the first `length` positions of row `source`."""
        for layer in self._kv.values():
            for held in layer.tensors:
                held[target, :, :length] = held[source, :, :length]

    def remove_row(self, row: int, last: int) -> None:
        """Frees `row`; row `last`, the last in use, takes its place."""
        for layer in self._kv.values():
            for held in layer.tensors:
                if row != last:
                    held[row] = held[last]
                held[last] = 0

    def wipe_from(self, row: int) -> None:
        """Forgets what rows from `row` on hold."""
        for layer in self._kv.values():
            for held in layer.tensors:
                held[row:] = 0

    def clear(self) -> None:
        """Gives all memory back."""
        self._kv.clear()
        self._rows = self._length = 0

    def reserve(self, rows: int, length: int) -> None:
        """Makes room, in one go where several rows will join."""
        if rows <= self._rows and length <= self._length:
            return
        self._rows = max(rows, self._rows)
        self._length = max(-(-length // LENGTH_STEP) * LENGTH_STEP, self._length)
        for layer in self._kv.values():
            layer.allocate(layer.tensors, self._rows, self._length)
