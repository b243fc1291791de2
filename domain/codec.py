"""Requests and results as bytes: msgpack, in which a numeric array stays an array."""

from typing import Any, TypeVar

import msgspec
import numpy as np

T = TypeVar("T", bound=msgspec.Struct)

# Extension code of each dtype in the stored form. Codes are part of the stored format: add, never renumber.
DTYPE_CODES = {"int32": 1, "int64": 2, "float32": 3}
DTYPES = {code: np.dtype(name).newbyteorder("<") for name, code in DTYPE_CODES.items()}


def encode(value: msgspec.Struct) -> bytes:
    """Any struct of this package as bytes. One-dimensional int32, int64 and float32 arrays only."""
    return _ENCODER.encode(value)


def decode(data: bytes, into: type[T]) -> T:
    """The struct that `encode` wrote; its arrays are read-only views of `data`."""
    return msgspec.msgpack.decode(data, type=into, ext_hook=_array)


def decode_plain(data: bytes) -> Any:
    """What `encode` wrote, as dicts, lists and numbers."""
    return msgspec.msgpack.decode(data, ext_hook=lambda code, array: _array(code, array).tolist())


def _extension(value: Any) -> msgspec.msgpack.Ext:
    assert isinstance(value, np.ndarray) and value.ndim == 1, type(value)
    return msgspec.msgpack.Ext(DTYPE_CODES[value.dtype.name], np.ascontiguousarray(value).data.cast("B"))


def _array(code: int, data: memoryview) -> np.ndarray:
    return np.frombuffer(data, dtype=DTYPES[code])


_ENCODER = msgspec.msgpack.Encoder(enc_hook=_extension)
