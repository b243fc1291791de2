"""A number that a user attaches to a step of a session: a reward, most of the time."""

from marshmallow import ValidationError, fields

from schemas.base import AnswerSchema, RequestSchema
from schemas.bounds import INT32_MAX, Bounds
from schemas.fields import Integer, Number

MOST_NAME_CHARACTERS = 64


def check_name(name: str) -> None:
    if not (name.isprintable() and 1 <= len(name) <= MOST_NAME_CHARACTERS):
        raise ValidationError(f"must have 1 to {MOST_NAME_CHARACTERS} printable characters")


class LogBodySchema(RequestSchema):
    name = fields.String(
        required=True,
        validate=check_name,
        metadata={"description": "The curve that the number belongs to.", "minLength": 1, "examples": ["reward"]},
    )
    step = Integer(Bounds(0, INT32_MAX), required=True, description="The step that it belongs to.")
    value = Number(required=True, description="The number. Several of one step are averaged where they are shown.")


class LoggedSchema(AnswerSchema):
    name = fields.String(required=True, metadata={"examples": ["reward"]})
    step = fields.Integer(required=True, metadata={"examples": [3]})
    value = fields.Float(required=True, metadata={"examples": [0.5]})
