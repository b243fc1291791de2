"""A kernel as Python calls it: with the fields of its struct in interface.h as keywords, checked."""

import ctypes
import struct
from functools import cached_property
from operator import itemgetter

import numpy as np
import torch
from torch import Tensor

from workers.engine.kernels.interface import Field, kernels, record
from workers.engine.kernels.kernel import DTYPES, library

Argument = Tensor | np.ndarray | float | None

# Of module struct. A long is a size or a count, and so is not negative.
FORMATS = {"long": "Q", "int64_t": "q", "uint64_t": "Q", "uint32_t": "I", "float": "f", "double": "d"}
POINTER = "P"
ELEMENTS = {"float": torch.float32, "double": torch.float64, "int64_t": torch.int64, "long": torch.int64}
STRIDE, COUNT = "_stride", "_count"


class Kernel:
    """`name`_float32 and `name`_bfloat16 of the library.

    A field `x_stride` follows from the tensor x, and `rows_count` from the array rows; no caller passes them.
    """

    def __init__(self, name: str) -> None:
        fields = kernels()[name]
        self._name, self._fields = name, fields
        names = {field.name for field in fields}
        pointers = [field for field in fields if field.is_pointer]
        is_array = {field.name: field.type not in ELEMENTS and field.type != "T" for field in pointers}
        self._tensors = [
            (field.name, ELEMENTS.get(field.type), _or_none(field.name + STRIDE, names))
            for field in pointers
            if not is_array[field.name]
        ]
        self._arrays = [
            (field.name, record(field.type), field.name + COUNT) for field in pointers if is_array[field.name]
        ]
        self._names = {name for name in names if not name.endswith((STRIDE, COUNT))}
        self._optional = {field.name for field in fields if field.is_optional}
        self._in_order = itemgetter(*(field.name for field in fields))
        self._struct = struct.Struct("".join(map(_format, fields)))

    def __call__(self, dtype: torch.dtype, **arguments: Argument) -> None:
        """`dtype` is the T of interface.h.

        Raises:
            TypeError: an argument is missing, unknown, or of another kind or dtype than its field.
            ValueError: a tensor is not on a CPU or not laid out as the kernel reads it, or a number is out of range.
        """
        if arguments.keys() != self._names:
            self._complete(arguments)
        # The memory is held by `arguments` as long as the kernel runs.
        plain: dict[str, object] = {**arguments}
        for name, own_dtype, stride in self._tensors:
            tensor = arguments[name]
            if isinstance(tensor, Tensor):
                _check_tensor(name, tensor, own_dtype or dtype, has_stride=stride is not None)
                plain[name] = tensor.data_ptr()
                if stride:
                    plain[stride] = tensor.stride(0)
            elif tensor is None and name in self._optional:
                plain[name] = 0
            else:
                raise TypeError(f"{self._name}: {name} is a tensor, not {type(tensor).__name__}")
        for name, elements, count in self._arrays:
            array = _checked_array(name, arguments[name], elements)
            plain[name], plain[count] = array.ctypes.data, array.shape[-1]
        self._functions[dtype](self._packed(plain))

    def _complete(self, arguments: dict[str, Argument]) -> None:
        for name in self._optional:
            arguments.setdefault(name, None)
        if wrong := arguments.keys() ^ self._names:
            raise TypeError(f"{self._name}: missing or unknown arguments {', '.join(sorted(wrong))}")

    def _packed(self, plain: dict[str, object]) -> bytes:
        try:
            return self._struct.pack(*self._in_order(plain))
        except struct.error:
            for field in self._fields:
                _check_number(field, plain[field.name])
            raise

    @cached_property
    def _functions(self) -> "dict[torch.dtype, ctypes._NamedFuncPointer]":
        functions = {dtype: library()[f"{self._name}_{ending}"] for dtype, ending in DTYPES.items()}
        for function in functions.values():
            # The bytes of the struct, which are aligned as pointers are.
            function.argtypes, function.restype = [ctypes.c_char_p], None
        return functions


def _format(field: Field) -> str:
    return POINTER if field.is_pointer else FORMATS[field.type]


def _or_none(name: str, names: set[str]) -> str | None:
    return name if name in names else None


def _check_tensor(name: str, tensor: Tensor, dtype: torch.dtype, has_stride: bool) -> None:
    if tensor.dtype is not dtype:
        raise TypeError(f"{name} is a tensor of {dtype}, not {tensor.dtype}")
    if not tensor.is_cpu:
        raise ValueError(f"{name} is not on a CPU")
    if not tensor.is_contiguous() and not (has_stride and has_contiguous_rows(tensor)):
        raise ValueError(f"{name} {list(tensor.shape)} with strides {tensor.stride()} is not contiguous")


def _checked_array(name: str, value: Argument, elements: np.dtype) -> np.ndarray:
    if not isinstance(value, np.ndarray) or value.dtype != elements:
        raise TypeError(f"{name} is an array of {elements.names}")
    if not value.flags.c_contiguous:
        raise ValueError(f"{name} is not contiguous")
    return value


def _check_number(field: Field, value: object) -> None:
    is_integer = not field.is_pointer and FORMATS[field.type] not in "fd"
    if not isinstance(value, int if is_integer else int | float):
        raise TypeError(f"{field.name} is a {field.type}, not {type(value).__name__}")
    try:
        struct.pack(_format(field), value)
    except struct.error as error:
        raise ValueError(f"{field.name} {value} is out of range: {error}") from error


def has_contiguous_rows(x: Tensor) -> bool:
    """Of a matrix [T, D] or of [T, H, D]: whether the numbers of each token lie together."""
    return x.stride()[1:] in ((1,), (x.shape[-1], 1))
