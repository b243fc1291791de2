"""An operation as a client sees it: its state, its result once COMPLETED, its error once FAILED."""

from datetime import UTC, datetime
from typing import Any

from marshmallow import fields

from domain.operation import ErrorCode, Operation, OperationStatus
from schemas.base import AnswerSchema
from schemas.fields import Choice, prefixed

STATUSES = prefixed(OperationStatus, "TRAINING_OPERATION_STATUS_")
ERROR_CODES = prefixed(ErrorCode, "TRAINING_OPERATION_ERROR_CODE_")


def identifier(description: str, attribute: str | None = None) -> fields.String:
    metadata = {"description": description, "examples": ["01900a6e-5c1b-7d44-9f0e-2f5f3c1f8f11"]}
    return fields.String(required=True, attribute=attribute, metadata=metadata)


def timestamp(description: str, *, required: bool = False) -> fields.String:
    metadata = {"description": description, "format": "date-time", "examples": ["2026-03-01T09:30:00.250Z"]}
    return fields.String(required=required, metadata=metadata)


class OperationErrorSchema(AnswerSchema):
    code = Choice(ERROR_CODES, required=True, description="Why the operation failed.")
    message = fields.String(
        required=True,
        metadata={
            "description": "What happened and what to do.",
            "examples": ["no gradient has been accumulated; send a forward-backward first"],
        },
    )


class OperationSchema(AnswerSchema):
    """What all kinds have in common; each adds its own data."""

    operation_id = identifier("The operation's id.")
    status = Choice(STATUSES, required=True, description="Where the operation is.")
    error = fields.Nested(OperationErrorSchema, metadata={"description": "The reason, once FAILED."})
    queue_position = fields.Integer(
        metadata={"description": "While PENDING: how many operations of the session come before it.", "examples": [2]}
    )


def operation_view(operation: Operation, result: Any = None, ahead: int | None = None) -> dict[str, Any]:
    """The fields of an OperationSchema that this operation has; `result` only when it is COMPLETED, `ahead`
    (operations of its session before it) only while it is PENDING."""
    view = {
        "operation_id": operation.id,
        "status": operation.status,
        "error": operation.error,
        "data": result,
        "queue_position": ahead,
    }
    return _present(view)


def rfc3339(seconds: float) -> str:
    """Unix seconds as UTC with milliseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _present(view: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in view.items() if value is not None}
