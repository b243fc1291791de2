"""Whole numeric lists as one field, checked and converted in bulk with numpy.

A list of a million numbers costs tens of milliseconds; a marshmallow field per element costs seconds.
"""

from typing import Any, NoReturn

import numpy as np
from marshmallow import ValidationError, fields

from schemas.bounds import FLOAT32, FLOAT32_MAX, INT64, Bounds
from schemas.fields import Integer, read_integer


class IntegerArray(fields.Field[np.ndarray]):
    """A list of integers (or decimal strings of them) within bounds, as an int64 array [T].

    A refusal names the index of the first offender.
    """

    def __init__(self, bounds: Bounds = INT64, *, description: str, examples: list[Any], **options: Any) -> None:
        self.bounds = bounds
        items = {**Integer.form, "format": "int64", **bounds.schema}
        schema = {"type": "array", "items": items, "description": description, "examples": examples}
        super().__init__(metadata=schema, **options)

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> np.ndarray:
        integers = self._integers(_a_list(value))
        try:
            array = np.array(integers, dtype=np.int64)
        except OverflowError:
            self._refuse(integers, next(i for i, number in enumerate(integers) if not self.bounds.hold(number)))
        within = (array >= self.bounds.least) & (array <= self.bounds.most)
        if not within.all():
            self._refuse(integers, int(within.argmin()))
        return array

    def _refuse(self, integers: list[int], index: int) -> NoReturn:
        refuse_at(index, self.bounds.sentence(integers[index]))

    def _integers(self, values: list[Any]) -> list[int]:
        if set(map(type, values)) <= {int}:
            return values
        integers = [read_integer(value) for value in values]
        if None in integers:
            refuse_at(integers.index(None), "must be an integer")
        return integers  # type: ignore[return-value]  # no None is left


class FloatArray(fields.Field[np.ndarray]):
    """A list of finite numbers that fit float32, as a float32 array [T]."""

    def __init__(self, *, description: str, examples: list[Any], **options: Any) -> None:
        schema = {"type": "array", "items": {"type": "number", **FLOAT32.schema}, "description": description}
        super().__init__(metadata={**schema, "examples": examples}, **options)

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> np.ndarray:
        values = _a_list(value)
        if not set(map(type, values)) <= {int, float}:
            offender = next(i for i, number in enumerate(values) if type(number) not in (int, float))
            refuse_at(offender, "must be a number")
        array_64 = np.array(values, dtype=np.float64)
        fits = np.abs(array_64) <= FLOAT32_MAX
        if not fits.all():
            refuse_at(int(fits.argmin()), "must be a finite number that fits float32")
        return array_64.astype(np.float32)


class AnswerArray(fields.Field[np.ndarray]):
    """A numeric array in an answer: orjson writes it as it is, and it is finite."""

    def __init__(self, items: str, *, description: str, examples: list[Any]) -> None:
        schema = {"type": "array", "items": {"type": items}, "description": description, "examples": examples}
        super().__init__(metadata=schema, required=True)

    def _serialize(self, value: np.ndarray | None, *_: Any, **__: Any) -> np.ndarray | None:
        assert value is not None
        assert np.isfinite(value).all(), self.name
        return value


def to_bfloat16(values_T: np.ndarray) -> np.ndarray:
    """float32 values rounded to the nearest bfloat16 (ties to even), still as float32; may round up to infinity."""
    bits = values_T.view(np.uint32)
    rounded = bits + 0x7FFF + ((bits >> 16) & 1)
    return (rounded & np.uint32(0xFFFF0000)).view(np.float32)


def refuse_at(index: int, sentence: str) -> NoReturn:
    """Refuses one element of a list."""
    raise ValidationError({index: [sentence]})


def _a_list(value: Any) -> list[Any]:
    if type(value) is not list:
        raise ValidationError("must be a list")
    return value
