"""Strict scalar fields: no coercion.

marshmallow's own Integer reads 1.9 as 1 and " 7 " as 7, and its strict form refuses "456"; its Float reads "1.5".
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar

from marshmallow import ValidationError, fields

from schemas.bounds import FLOAT32, INT64, Bounds

DECIMAL = re.compile(r"-?[0-9]{1,19}")


def read_integer(value: Any) -> int | None:
    """A JSON integer or a decimal string of one (ASCII digits, optional minus); None for anything else."""
    if type(value) is int:
        return value
    if type(value) is str and DECIMAL.fullmatch(value):
        return int(value)
    return None


class Integer(fields.Field[int]):
    """A 64-bit integer within its bounds: a JSON integer, or a decimal string of one."""

    form: ClassVar[dict[str, Any]] = {"type": ["integer", "string"], "pattern": f"^{DECIMAL.pattern}$"}

    def __init__(self, bounds: Bounds = INT64, *, description: str, **options: Any) -> None:
        self.bounds = bounds
        schema = {**self.form, "format": "int64", **bounds.schema, "description": description}
        super().__init__(metadata={**schema, **options.pop("metadata", {})}, **options)

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> int:
        number = read_integer(value)
        if number is None:
            raise ValidationError("must be an integer")
        if not self.bounds.hold(number):
            raise ValidationError(self.bounds.sentence(number))
        return number


class QueryInteger(Integer):
    """An integer in a query string, where every value is a string to begin with."""

    form: ClassVar[dict[str, Any]] = {"type": "integer"}


class Number(fields.Field[float]):
    """A finite JSON number within its bounds; a string or a boolean is not one."""

    def __init__(self, bounds: Bounds = FLOAT32, *, description: str, **options: Any) -> None:
        self.bounds = bounds
        super().__init__(metadata={"type": "number", **bounds.schema, "description": description}, **options)

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> float:
        if type(value) not in (int, float):
            raise ValidationError("must be a number")
        if not self.bounds.hold(value):
            raise ValidationError(self.bounds.sentence(value))
        return float(value)


class Flag(fields.Field[bool]):
    """true or false, and nothing like it."""

    words: ClassVar[dict[Any, bool]] = {}

    def __init__(self, *, description: str, **options: Any) -> None:
        super().__init__(metadata={"type": "boolean", "description": description}, **options)

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> bool:
        if type(value) is str and value in self.words:
            return self.words[value]
        if type(value) is not bool:
            raise ValidationError("must be true or false")
        return value


class QueryFlag(Flag):
    """A flag in a query string, where every value is a string to begin with."""

    words: ClassVar[dict[Any, bool]] = {"true": True, "false": False}


class Choice(fields.Field[Any]):
    """One of a few names, each standing for a value."""

    def __init__(self, choices: Mapping[str, Any], *, description: str, **options: Any) -> None:
        self.choices = choices
        self.names: dict[Any, str] = {value: name for name, value in reversed(list(choices.items()))}
        schema = {"type": "string", "enum": list(choices), "description": description}
        super().__init__(metadata=schema, **options)

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> Any:
        name = self.key(value) if isinstance(value, str) else ""
        if name not in self.choices:
            raise ValidationError(f"must be one of {', '.join(self.choices)}")
        return self.choices[name]

    def _serialize(self, value: Any, *_: Any, **__: Any) -> str:
        return self.names[value]

    def key(self, value: str) -> str:
        """The name among the choices that `value` spells, or `value` itself."""
        return value


class AnyCaseChoice(Choice):
    """A choice whose names may be written in any case."""

    def __init__(self, choices: Mapping[str, Any], *, description: str, **options: Any) -> None:
        super().__init__(choices, description=f"{description} Upper and lower case are the same.", **options)
        self.folded = {name.lower(): name for name in choices}

    def key(self, value: str) -> str:
        return self.folded.get(value.lower(), value)


def prefixed(enum: type[StrEnum], prefix: str) -> dict[str, Any]:
    """The wire names of an enum's members."""
    return {f"{prefix}{member.name}": member for member in enum}


class BoundedList(fields.List):
    """A list whose length is looked at before its items, so that a long one costs nothing to refuse.

    The bound is not in the published schema: it is far above what the server's limits allow.
    """

    def __init__(self, inner: Any, *, most: int, description: str, **options: Any) -> None:
        self.most = most
        metadata = {"description": description, **options.pop("metadata", {})}
        super().__init__(inner, metadata=metadata, **options)

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(value, list) and len(value) > self.most:
            raise ValidationError(f"must have at most {self.most} items")
        return super()._deserialize(value, *args, **kwargs)
