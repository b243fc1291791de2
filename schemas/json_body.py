"""The JSON of a body: a large one is read within bounds that hold before anything is made of it."""

import re
from functools import cache
from typing import Any

import msgspec
from marshmallow import Schema, ValidationError, fields

from schemas.base import UNKNOWN_FIELD, nearest
from schemas.body_struct import parts_of, read_text, struct_of

LARGE = 128 * 1024
"""Up to this size a body is read as any JSON, which tells all that is wrong with it."""
MOST_OBJECTS = 2**18
"""Of all kinds in one body: 16,384 samples have twelve each, and the rest are chunks."""

PLACE = " - at `$"
STEP = re.compile(r"\.(\w+)|\[(\d+)\]")
NAMED = re.compile(r"Object (contains unknown|missing required) field `(.*)`", re.DOTALL)
EXPECTED = re.compile(r"Expected `(\w+).*got `(\w+)`")

Step = str | int


def read_json(text: bytes, schema: Schema, most_items: int) -> Any:
    """What `schema` is to load, or a part of it. Raises ValidationError, for a large one at the first thing that has no
    place in it; lists of objects in a large one may have `most_items`."""
    return read_text(text) if len(text) <= LARGE else _read_large(text, schema, most_items)


def _read_large(text: bytes, schema: Schema, most_items: int) -> dict[str, Any]:
    if (count := text.count(b"{")) > MOST_OBJECTS:
        raise ValidationError(f"has {count} JSON objects, over the limit of {MOST_OBJECTS}")
    try:
        parts = parts_of(_decoder(type(schema)).decode(text))
    except msgspec.ValidationError as error:
        raise _explained(str(error), schema) from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValidationError(f"is not JSON: {error}") from error
    for name, value in parts.items():
        if isinstance(value, list) and len(value) > most_items:
            raise ValidationError({name: [f"has {len(value)} {name}, over the limit of {most_items}"]})
    return parts


@cache
def _decoder(kind: type[Schema]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(struct_of(kind))


def _explained(error: str, schema: Schema) -> ValidationError:
    """msgspec's sentence in our words, at our path."""
    sentence, _, place = error.rpartition(PLACE) if PLACE in error else (error, "", "")
    steps: list[Step] = [name or int(index) for name, index in STEP.findall(place)]
    if found := NAMED.fullmatch(sentence):
        kind, name = found.groups()
        hint = UNKNOWN_FIELD + nearest(name, _schema_at(schema, steps).fields)
        return _at([*steps, name], "is required" if kind == "missing required" else hint)
    found = EXPECTED.fullmatch(sentence)
    assert found, error
    expected, got = found.groups()
    kinds = {"array": "must be a list", "object": "must be a JSON object"}
    return _at(steps, "must not be null" if got == "null" else kinds[expected])


def _schema_at(schema: Schema, steps: list[Step]) -> Schema:
    for name in steps:
        if isinstance(name, str):
            field = schema.fields[name]
            nested = field.inner if isinstance(field, fields.List) else field
            assert isinstance(nested, fields.Nested), name
            schema = nested.schema
    return schema


def _at(steps: list[Step], sentence: str) -> ValidationError:
    messages: Any = [sentence]
    for step in reversed(steps):
        messages = {step: messages}
    return ValidationError(messages)
