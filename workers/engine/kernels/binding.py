"""A kernel as Python calls it: with the fields of its struct in interface.h as keywords, checked."""

import ctypes
from collections.abc import Callable
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from workers.engine.kernels.interface import Field, kernels, record
from workers.engine.kernels.kernel import DTYPES, library

Argument = Tensor | np.ndarray | float | None
Reader = Callable[[dict[str, Argument], torch.dtype], object]

C_TYPES: dict[str, type[ctypes._SimpleCData]] = {
    "long": ctypes.c_int64, "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64, "uint32_t": ctypes.c_uint32,
    "float": ctypes.c_float, "double": ctypes.c_double,
}  # fmt: skip
ELEMENTS = {"float": torch.float32, "double": torch.float64, "int64_t": torch.int64, "long": torch.int64}
LIMITS = {"long": 1 << 63, "int64_t": 1 << 63, "uint64_t": 1 << 64, "uint32_t": 1 << 32}
STRIDE, COUNT = "_stride", "_count"


class Kernel:
    """`name`_float32 and `name`_bfloat16 of the library.

    A field `x_stride` follows from the tensor x, and `rows_count` from the array rows; no caller passes them.
    """

    def __init__(self, name: str) -> None:
        fields = kernels()[name]
        self._name = name
        self._readers = [_reader(field, {other.name for other in fields}) for field in fields]
        self._arguments = type(f"{name}_arguments", (ctypes.Structure,), {"_fields_": [_c_field(f) for f in fields]})
        self._names = {field.name for field in fields if not _is_derived(field.name)}
        self._optional = {field.name for field in fields if field.is_optional}

    def __call__(self, dtype: torch.dtype, **arguments: Argument) -> None:
        """`dtype` is the T of interface.h.

        Raises:
            TypeError: an argument is missing, unknown, or of another kind or dtype than its field.
            ValueError: a tensor is not on a CPU or not laid out as the kernel reads it, or an integer is out of range.
        """
        if arguments.keys() != self._names:
            self._check_names(set(arguments))
        values = [read(arguments, dtype) for read in self._readers]
        self._functions[dtype](ctypes.byref(self._arguments(*values)))

    def _check_names(self, given: set[str]) -> None:
        wrong = (given - self._names) | (self._names - self._optional - given)
        if wrong:
            raise TypeError(f"{self._name}: missing or unknown arguments {', '.join(sorted(wrong))}")

    @cached_property
    def _functions(self) -> "dict[torch.dtype, ctypes._NamedFuncPointer]":
        functions = {dtype: library()[f"{self._name}_{ending}"] for dtype, ending in DTYPES.items()}
        for function in functions.values():
            function.restype = None
        return functions


def _is_derived(name: str) -> bool:
    return name.endswith((STRIDE, COUNT))


def _c_field(field: Field) -> tuple[str, type]:
    return field.name, ctypes.c_void_p if field.is_pointer else C_TYPES[field.type]


def _reader(field: Field, names: set[str]) -> Reader:
    """Takes what a field holds from the arguments of a call."""
    name = field.name
    if name.endswith(STRIDE):
        return lambda arguments, _: arguments[name.removesuffix(STRIDE)].stride(0)  # type: ignore[union-attr]
    if name.endswith(COUNT):
        return lambda arguments, _: arguments[name.removesuffix(COUNT)].shape[-1]  # type: ignore[union-attr]
    if not field.is_pointer:
        return lambda arguments, _: _scalar(field, arguments[name])
    if field.type != "T" and field.type not in ELEMENTS:
        elements = record(field.type)
        return lambda arguments, _: _address_of_array(name, elements, arguments[name])
    own, has_stride = ELEMENTS.get(field.type), name + STRIDE in names
    return lambda arguments, dtype: _address(field, own or dtype, has_stride, arguments.get(name))


def _scalar(field: Field, value: Argument) -> float:
    limit = LIMITS.get(field.type)
    if not isinstance(value, (int,) if limit else (int, float)):
        raise TypeError(f"{field.name} is a {field.type}, not {type(value).__name__}")
    if limit and not 0 <= value < limit:
        raise ValueError(f"{field.name} {value} is no {field.type} from 0 on")
    return value


def _address_of_array(name: str, elements: np.dtype, value: Argument) -> int:
    if not isinstance(value, np.ndarray) or value.dtype != elements:
        raise TypeError(f"{name} is an array of {elements.names}")
    if not value.flags.c_contiguous:
        raise ValueError(f"{name} is not contiguous")
    return value.ctypes.data


def _address(field: Field, dtype: torch.dtype, has_stride: bool, value: Argument) -> int | None:
    if value is None and field.is_optional:
        return None
    if not isinstance(value, Tensor) or value.dtype is not dtype:
        raise TypeError(f"{field.name} is a tensor of {dtype}, not {getattr(value, 'dtype', type(value).__name__)}")
    if not value.is_cpu:
        raise ValueError(f"{field.name} is not on a CPU")
    if not value.is_contiguous() and not (has_stride and has_contiguous_rows(value)):
        raise ValueError(f"{field.name} {list(value.shape)} with strides {value.stride()} is not contiguous")
    return value.data_ptr()


def has_contiguous_rows(x: Tensor) -> bool:
    """Of a matrix [T, D] or of [T, H, D]: whether the numbers of each token lie together."""
    return x.stride()[1:] in ((1,), (x.shape[-1], 1))
