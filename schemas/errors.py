"""The one shape of every error."""

from typing import Any

from marshmallow import fields

from schemas.base import AnswerSchema
from schemas.problems import first_problems

EXAMPLE_ID = "5f0c7a52-3c1e-4b0b-9d39-6a6d0b6a1f3e"


class ProblemSchema(AnswerSchema):
    field = fields.String(
        required=True,
        metadata={
            "description": "Path of the field, empty for the request as a whole.",
            "examples": ["samples[0].loss_inputs.loss_mask.data[3]"],
        },
    )
    message = fields.String(
        required=True,
        metadata={"description": "What is wrong with it.", "examples": ["must be at most 1"]},
    )


class ErrorSchema(AnswerSchema):
    code = fields.Integer(required=True, metadata={"description": "The HTTP status.", "examples": [400]})
    message = fields.String(
        required=True,
        metadata={"description": "What happened and what to do.", "examples": ["the request has 1 problem"]},
    )
    request_id = fields.String(
        required=True,
        metadata={
            "description": "The request's X-Request-ID; the server's log tells more under it.",
            "examples": [EXAMPLE_ID],
        },
    )
    errors = fields.List(
        fields.Nested(ProblemSchema), metadata={"description": "The first problems of the request, at most 10."}
    )


def error_body(code: int, message: str, request_id: str) -> dict[str, Any]:
    return {"code": code, "message": message, "request_id": request_id}


def invalid_body(messages: Any, request_id: str) -> dict[str, Any]:
    """The 400 for what a schema refused; `messages` are marshmallow's."""
    problems, more = first_problems(messages)
    first = f"{problems[0].field}: {problems[0].message}" if problems[0].field else problems[0].message
    rest = len(problems) + more - 1
    message = first if rest == 0 else f"{first} (and {rest} more)"
    return {**error_body(400, message, request_id), "errors": [problem._asdict() for problem in problems]}
