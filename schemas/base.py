"""The two kinds of schema: a request is read strictly, an answer is written as it is."""

import difflib
from collections.abc import Mapping
from itertools import islice
from typing import Any

import msgspec
from marshmallow import EXCLUDE, RAISE, Schema, ValidationError, fields, pre_load

from schemas.body_struct import parts_of, value_of
from schemas.problems import MOST_NAME_CHARACTERS, MOST_PROBLEMS

UNKNOWN_FIELD = "unknown field"


class RequestSchema(Schema):
    """An unknown field is refused with the nearest known one; null for an optional field means absent."""

    class Meta:
        unknown = RAISE

    takes_null = True
    # marshmallow reads it from the class, and types it as an instance's.
    error_messages = {"type": "must be a JSON object", "unknown": UNKNOWN_FIELD}  # noqa: RUF012

    def on_bind_field(self, _: str, field_obj: fields.Field[Any]) -> None:
        """Says of every field what the base does with it: in refusals, and with null in OpenAPI."""
        field_obj.error_messages = {**field_obj.error_messages, **_MESSAGES, **_own_messages(field_obj)}
        if self.takes_null and not field_obj.required:
            field_obj.allow_none = True
            if "enum" in field_obj.metadata:
                field_obj.metadata = {**field_obj.metadata, "enum": [*field_obj.metadata["enum"], None]}

    @pre_load
    def drop_null(self, data: Any, **_: Any) -> Any:
        data = self._read(data)
        if not isinstance(data, dict) or None not in data.values():
            return data
        return {name: value for name, value in data.items() if value is not None or not self._is_optional(name)}

    def _read(self, data: Any) -> Any:
        """The same where it is part of a large body, and is still a struct or text."""
        if isinstance(data, msgspec.Struct):
            data = parts_of(data)
        if not isinstance(data, dict) or msgspec.Raw not in map(type, data.values()):
            return data
        values, wrong = {}, {}
        for name, value in data.items():
            try:
                values[name] = value_of(self.fields.get(name), value)
            except ValidationError as error:
                wrong[name] = error.messages
        if wrong:
            raise ValidationError(wrong)
        return values

    def _is_optional(self, name: str) -> bool:
        return name in self.fields and not self.fields[name].required

    def handle_error(self, error: ValidationError, *_: Any, **__: Any) -> None:
        """Adds to unknown fields the known one that was probably meant."""
        if isinstance(error.messages, dict):
            unknown = (name for name, message in error.messages.items() if message == [UNKNOWN_FIELD])
            for name in islice(unknown, MOST_PROBLEMS):
                error.messages[name] = [UNKNOWN_FIELD + nearest(name, self.fields)]


class QuerySchema(RequestSchema):
    """A query string: strict like a body, but it has no null."""

    takes_null = False


class AnswerSchema(Schema):
    """What the server sends. Its fields say what a client may rely on; later versions may add some."""

    class Meta:
        unknown = EXCLUDE


def nearest(name: str, known: Mapping[str, Any]) -> str:
    """A hint at the known name closest to `name`, or nothing."""
    near = difflib.get_close_matches(name[:MOST_NAME_CHARACTERS], known, n=1)
    return f"; did you mean {near[0]}?" if near else ""


_MESSAGES = {"required": "is required", "null": "must not be null", "type": "must be a JSON object"}


def _own_messages(field: fields.Field[Any]) -> dict[str, str]:
    plain = {
        fields.List: {"invalid": "must be a list"},
        fields.String: {"invalid": "must be a string", "invalid_utf8": "must be a string"},
    }
    return plain.get(type(field), {})
