"""Whole numeric lists as one field, checked and converted in bulk with numpy.

A list of a million numbers costs tens of milliseconds; a marshmallow field per element costs seconds, and a loop in
Python hundreds of milliseconds.
"""

import re
from typing import Annotated, Any, ClassVar, NoReturn

import msgspec
import numpy as np
from marshmallow import ValidationError, fields

from domain.limits import MOST_ENTRIES
from schemas.body_struct import read_text
from schemas.bounds import FLOAT32, FLOAT32_MAX, INT32_MAX, INT64, INT64_MAX, INT64_MIN, Bounds
from schemas.fields import DECIMAL, Integer, read_integer

# Possessive: it keeps no way back for each of a million numbers.
DECIMALS = re.compile(f"{DECIMAL.pattern}(?:,{DECIMAL.pattern})*+")
TOO_MANY = f"must have at most {MOST_ENTRIES} entries"


class NumericArray(fields.Field[np.ndarray]):
    """A list, or the text of one, which is then never a list of Python's for longer than it takes to read it."""

    reads_text = True
    decoder: ClassVar[msgspec.json.Decoder[Any]]

    def _list(self, value: Any) -> list[Any]:
        if isinstance(value, msgspec.Raw):
            value = self._from_text(bytes(value))
        if type(value) is not list:
            raise ValidationError("must be a list")
        if len(value) > MOST_ENTRIES:
            raise ValidationError(TOO_MANY)
        return value

    def _from_text(self, text: bytes) -> Any:
        if text.count(b",") >= MOST_ENTRIES:
            raise ValidationError(TOO_MANY)
        try:
            return self.decoder.decode(text)
        except msgspec.DecodeError:
            # Decimal strings, or what is to be refused by its index.
            return read_text(text)


class IntegerArray(NumericArray):
    """A list of integers (or decimal strings of them) within bounds, as an int64 array [T].

    A refusal names the index of the first offender.
    """

    # Stops at the first that is too large: to read an integer takes the square of its digits.
    decoder = msgspec.json.Decoder(list[Annotated[int, msgspec.Meta(ge=INT64_MIN, le=INT64_MAX)]])

    def __init__(self, bounds: Bounds = INT64, *, description: str, examples: list[Any], **options: Any) -> None:
        self.bounds = bounds
        items = {**Integer.form, "format": "int64", **bounds.schema}
        schema = {"type": "array", "items": items, "description": description, "examples": examples}
        super().__init__(metadata=schema, **options)

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> np.ndarray:
        integers = self._integers(self._list(value))
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


class FloatArray(NumericArray):
    """A list of finite numbers that fit float32, as a float32 array [T]."""

    decoder = msgspec.json.Decoder(list[float])

    def __init__(self, *, description: str, examples: list[Any], **options: Any) -> None:
        schema = {"type": "array", "items": {"type": "number", **FLOAT32.schema}, "description": description}
        super().__init__(metadata={**schema, "examples": examples}, **options)

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> np.ndarray:
        values = self._list(value)
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


def narrowed(integers: np.ndarray) -> np.ndarray:
    """The same as int32, half as large, where they fit."""
    return integers.astype(np.int32) if not integers.size or integers.max() <= INT32_MAX else integers


def refuse_at(index: int, sentence: str) -> NoReturn:
    """Refuses one element of a list."""
    raise ValidationError({index: [sentence]})


def _are(values: list[Any], kind: Any) -> bool:
    """Whether they are all of one JSON type; for list[float], integers too. A boolean is neither."""
    try:
        msgspec.convert(values, kind)
    except msgspec.ValidationError:
        return False
    return True
