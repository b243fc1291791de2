"""The structs of interface.h, which the C++ sources are compiled against, as Python builds them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

HEADER = Path(__file__).with_name("interface.h")
SCALARS = {"long": "i8", "int64_t": "i8", "uint64_t": "u8", "uint32_t": "u4", "float": "f4", "double": "f8"}

_COMMENT = re.compile(r"//.*")
_STRUCT = re.compile(
    r"^(?:KERNEL\((\w+)\)|(?:template <typename T> )?struct (\w+)) \{\n(.*?)^\};", re.DOTALL | re.MULTILINE
)
_DECLARATION = re.compile(r"(?:const )?(\w+)(?:<T>)? (.+)")
_FIELD = re.compile(r"(\*?)(\w+)( = nullptr)?")


@dataclass(frozen=True)
class Field:
    """Of a struct. `type` is as in C++: T, a key of SCALARS, or the name of a struct."""

    name: str
    type: str
    is_pointer: bool
    is_optional: bool


@cache
def kernels() -> dict[str, tuple[Field, ...]]:
    """The arguments of each kernel."""
    return {kernel: fields for kernel, _, fields in _structs() if kernel}


@cache
def record(name: str) -> np.dtype:
    """The elements of an array that a kernel reads; a pointer is an address."""
    (fields,) = (fields for _, struct, fields in _structs() if struct == name)
    types = [(field.name, "i8" if field.is_pointer else SCALARS[field.type]) for field in fields]
    return np.dtype(types, align=True)


def _structs() -> Iterator[tuple[str, str, tuple[Field, ...]]]:
    for kernel, struct, body in _STRUCT.findall(_COMMENT.sub("", HEADER.read_text())):
        *declarations, rest = (" ".join(part.split()) for part in body.split(";"))
        assert not rest, rest
        yield kernel, struct, tuple(field for one in declarations for field in fields_of(one))


def fields_of(declaration: str) -> list[Field]:
    """Raises ValueError for C++ that is more than pointers and scalars."""
    matched = _DECLARATION.fullmatch(declaration)
    parts = [_FIELD.fullmatch(part) for part in matched[2].split(", ")] if matched else [None]
    fields = [Field(part[2], matched[1], bool(part[1]), bool(part[3])) for part in parts if part and matched]
    if len(fields) < len(parts):
        raise ValueError(f"interface.h: {declaration!r} is not a list of pointers or scalars")
    return fields
