"""Celery's Redis result backend, with the store's atomic finish as its store step."""

import logging
from typing import Any

from celery import states
from celery.backends.redis import RedisBackend
from redis.exceptions import RedisError

from contract.operation import ErrorCode, OperationError, OperationFailedError, OperationStatus
from store.claims import Claim
from store.errors import NotFoundError
from workers.patience import persist
from workers.process import current

log = logging.getLogger(__name__)

STATES = {
    OperationStatus.PENDING: states.PENDING,
    OperationStatus.RUNNING: states.STARTED,
    OperationStatus.COMPLETED: states.SUCCESS,
    OperationStatus.FAILED: states.FAILURE,
}


class OperationBackend(RedisBackend):  # type: ignore[misc]  # celery has no annotations
    """A task's result is its operation's: one record, written once, only by who holds the claim."""

    def store_result(
        self, task_id: str, result: Any, state: str, traceback: str | None = None, request: Any = None, **_: Any
    ) -> Any:
        claim: Claim | None = getattr(request, "claim", None)
        if claim is None:
            log.warning("operation %s was not begun here; its state is left as it is", task_id)
            return result
        outcome = operation_error(result) if state == states.FAILURE else result
        store = current().store
        if not persist(lambda: store.claims.finish(claim, outcome), f"finishing operation {task_id}"):
            log.warning("operation %s was taken away from this worker; its result is dropped", task_id)
        return result

    def _get_task_meta_for(self, task_id: str) -> dict[str, Any]:
        try:
            operation = current().store.claims.find(task_id)
        except NotFoundError:
            return {"status": states.PENDING, "result": None}
        error = RuntimeError(operation.error.message) if operation.error else None
        return {"status": STATES[operation.status], "result": error, "task_id": task_id}


def operation_error(error: BaseException) -> OperationError:
    """What a client is told of an exception: the engine's own words, or that the fault is ours."""
    if isinstance(error, OperationFailedError):
        return error.error
    return OperationError(
        ErrorCode.INTERNAL_ERROR,
        f"the operation met an unexpected {type(error).__name__}; the worker's log has the details",
    )
