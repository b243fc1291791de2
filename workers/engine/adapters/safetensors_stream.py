"""A safetensors file written tensor by tensor, so that it may be larger than memory.

The format (https://huggingface.co/docs/safetensors): the header's length as a little-endian 64-bit integer, a JSON
header padded with spaces to a multiple of 8, then the tensors' bytes without gaps.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from domain.checkpoint import NewFile

NAMES = {
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16",
    torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL",
}  # fmt: skip
DTYPES = {name: dtype for dtype, name in NAMES.items()}


@dataclass(frozen=True)
class Entry:
    """A tensor of the file: what is known of it beforehand, and how to make it."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    make: Callable[[], Tensor]

    @property
    def size(self) -> int:
        return prod(self.shape) * self.dtype.itemsize


def safetensors_file(name: str, entries: list[Entry]) -> NewFile:
    """The file of these tensors. Wide ones come first, so that each lies at a multiple of its own width."""
    entries = sorted(entries, key=lambda entry: -entry.dtype.itemsize)
    header = _header(entries)
    return NewFile(name, len(header) + sum(entry.size for entry in entries), _chunks(header, entries))


def _header(entries: list[Entry]) -> bytes:
    fields: dict[str, object] = {"__metadata__": {"format": "pt"}}
    at = 0
    for entry in entries:
        end = at + entry.size
        fields[entry.name] = {"dtype": NAMES[entry.dtype], "shape": entry.shape, "data_offsets": [at, end]}
        at = end
    text = json.dumps(fields).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def _chunks(header: bytes, entries: list[Entry]) -> Iterator[bytes]:
    yield header
    for entry in entries:
        tensor = entry.make()
        assert (tuple(tensor.shape), tensor.dtype) == (entry.shape, entry.dtype), entry.name
        # An array of bytes is as good as bytes to whoever writes it, without a copy.
        yield tensor.contiguous().reshape(-1).view(torch.uint8).numpy()  # type: ignore[misc]
