"""An operation as Together's API shows it, and the results that need no schema of their own."""

from typing import Any

from marshmallow import fields

from domain.operation import ErrorCode, Operation
from schemas.base import AnswerSchema, RequestSchema
from schemas.fields import Choice
from schemas.operations import STATUSES, identifier

PREFIX = "TRAINING_OPERATION_ERROR_CODE_"
# The dialect's words; it has none for an operation that was cancelled, which it cannot ask for.
CODES: dict[str, ErrorCode] = {
    f"{PREFIX}{code.name}": code for code in ErrorCode if code not in (ErrorCode.NON_FINITE, ErrorCode.CANCELLED)
}
CODES |= {f"{PREFIX}NON_FINITE_LOSS": ErrorCode.NON_FINITE, f"{PREFIX}UNSPECIFIED": ErrorCode.CANCELLED}
# Whether the answer comes before the publish does. No sample of the session is in flight when a weights-sync has its
# turn, so there is nothing for PIPELINE to overlap with.
IN_BACKGROUND = {
    "WEIGHT_SYNC_TYPE_SYNCHRONOUS": False,
    "WEIGHT_SYNC_TYPE_BACKGROUND_PUBLISH": True,
    "WEIGHT_SYNC_TYPE_PIPELINE": False,
}


class FailureSchema(AnswerSchema):
    code = Choice(CODES, required=True, description="Why the operation failed.")
    message = fields.String(required=True, metadata={"description": "What happened and what to do."})


class OperationSchema(AnswerSchema):
    """What all kinds have in common; each adds its own output."""

    id = identifier("The operation's id.")
    status = Choice(STATUSES, required=True, description="Where the operation is.")
    error = fields.Nested(FailureSchema, metadata={"description": "The reason, once FAILED."})


class WeightsSyncBodySchema(RequestSchema):
    weight_sync_type = Choice(
        IN_BACKGROUND,
        required=True,
        attribute="in_background",
        description="All three publish when the operation's turn comes. BACKGROUND_PUBLISH is COMPLETED before that.",
    )


class WeightsSyncResultSchema(AnswerSchema):
    weights_version = fields.Integer(
        required=True,
        metadata={"description": "The step that samples use now, or will use after a background publish."},
    )


class WeightsSyncOperationSchema(OperationSchema):
    output = fields.Nested(WeightsSyncResultSchema, metadata={"description": "The result, once COMPLETED."})


def operation_view(operation: Operation, output: dict[str, Any] | None = None) -> dict[str, Any]:
    view = {"id": operation.id, "status": operation.status, "error": operation.error, "output": output}
    return {name: value for name, value in view.items() if value is not None}
