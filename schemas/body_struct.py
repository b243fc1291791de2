"""A schema as a msgspec struct, so that a large body is read in one pass that stops at the first unknown field.

Objects, and lists of them, become structs; arrays of numbers and everything else stay text (msgspec.Raw), which their
own fields read, one at a time: so a body never lies in memory as a tree of Python objects, many times its size.
"""

from functools import cache
from typing import Any

import msgspec
import orjson
from marshmallow import Schema, ValidationError, fields
from msgspec import UNSET, Raw, UnsetType

MOST_VALUE_BYTES = 2**20
"""Of a value that is neither an object of a schema nor an array of numbers."""


@cache
def struct_of(kind: type[Schema], *, is_whole: bool = True) -> type[msgspec.Struct]:
    """The struct of a schema. Objects that it requires have to be there, unless it is that of the whole body, which may
    have a part of them elsewhere."""
    made = [_member(name, field, is_whole) for name, field in kind().load_fields.items()]
    return msgspec.defstruct(kind.__name__, made, forbid_unknown_fields=True, kw_only=True)


def parts_of(struct: msgspec.Struct) -> dict[str, Any]:
    """What was given, by name: structs, lists of them, None, and text."""
    members = {name: getattr(struct, name) for name in struct.__struct_fields__}
    return {name: value for name, value in members.items() if value is not UNSET and value is not ABSENT}


def value_of(field: fields.Field[Any] | None, value: Any) -> Any:
    """The value of text, unless it is an array that `field` reads itself."""
    if not isinstance(value, Raw):
        return value
    text = memoryview(value)
    if getattr(field, "reads_text", False) and bytes(text[:1]) == b"[":
        return value
    if len(text) > MOST_VALUE_BYTES:
        raise ValidationError(f"has {len(text)} bytes, over the limit of {MOST_VALUE_BYTES}")
    return read_text(text)


def read_text(text: bytes | memoryview) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ValidationError(f"is not JSON: {error}") from error


ABSENT = Raw()


def _member(name: str, field: fields.Field[Any], is_whole: bool) -> tuple[str, Any] | tuple[str, Any, Any]:
    inner = field.inner if isinstance(field, fields.List) else field
    if not isinstance(inner, fields.Nested):
        return name, Raw, ABSENT
    struct: Any = struct_of(type(inner.schema), is_whole=False)
    kind: Any = struct if inner is field else list[struct]
    return (name, kind) if field.required and not is_whole else (name, kind | None | UnsetType, UNSET)
