"""An operation in the list of its session's, with its kind and its times."""

from typing import Any

from domain.operation import Operation
from schemas.fields import Choice
from schemas.native import NATIVE
from schemas.operations import OperationSchema, operation_view, rfc3339, timestamp


class OperationSummarySchema(OperationSchema):
    kind = Choice({kind.value: kind for kind in NATIVE}, required=True, description="What the operation does.")
    created_at = timestamp("When it was accepted.", required=True)
    started_at = timestamp("When a worker began it.")
    ended_at = timestamp("When it ended.")


def summary_view(operation: Operation) -> dict[str, Any]:
    """The fields of an OperationSummarySchema that this operation has."""
    times = {name: getattr(operation, name) for name in ("created_at", "started_at", "ended_at")}
    stamps = {name: rfc3339(seconds) for name, seconds in times.items() if seconds is not None}
    return {**operation_view(operation), "kind": operation.kind, **stamps}
