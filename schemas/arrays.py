"""Whole numeric lists as one field, checked and converted in bulk with numpy.

A list of a million numbers costs tens of milliseconds; a marshmallow field per element costs seconds, and a loop in
Python hundreds of milliseconds.
"""

import re
from typing import Any, NoReturn

import msgspec
import numpy as np
from marshmallow import ValidationError, fields

from schemas.bounds import FLOAT32, FLOAT32_MAX, INT64, Bounds
from schemas.fields import DECIMAL, Integer, read_integer

DECIMALS = re.compile(f"{DECIMAL.pattern}(,{DECIMAL.pattern})*")


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
            array = np.fromiter(integers, np.int64, len(integers))
        except OverflowError:
            self._refuse(integers, next(i for i, number in enumerate(integers) if not self.bounds.hold(number)))
        within = (array >= self.bounds.least) & (array <= self.bounds.most)
        if not within.all():
            self._refuse(integers, int(within.argmin()))
        return array

    def _refuse(self, integers: list[int], index: int) -> NoReturn:
        refuse_at(index, self.bounds.sentence(integers[index]))

    def _integers(self, values: list[Any]) -> list[int]:
        if _are(values, list[int]):
            return values
        if set(map(type, values)) <= {int, str}:
            text = ",".join(map(str, values))
            if DECIMALS.fullmatch(text) and text.count(",") == len(values) - 1:
                return [*map(int, values)]
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
        if not _are(values, list[float]):
            offender = next(i for i, number in enumerate(values) if type(number) not in (int, float))
            refuse_at(offender, "must be a number")
        array_64 = np.fromiter(values, np.float64, len(values))
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


def _are(values: list[Any], kind: Any) -> bool:
    """Whether they are all of one JSON type; for list[float], integers too. A boolean is neither."""
    try:
        msgspec.convert(values, kind)
    except msgspec.ValidationError:
        return False
    return True
