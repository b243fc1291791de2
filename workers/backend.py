"""Celery's result backend: the store's operations, ended by its atomic finish and read as task results.

A task's id is its operation's id, so `AsyncResult(operation_id)` tells what the polling endpoint tells (see
docs/decisions/0044).
"""

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Any

import msgspec
from celery import states
from celery.backends.base import BaseBackend

from domain.kinds import KINDS
from domain.metrics import NO_METRICS, OperationMetrics
from domain.operation import ErrorCode, Operation, OperationError, OperationFailedError, OperationStatus
from settings import load_settings
from store.claims import Claim
from store.errors import ObjectsAwayError
from store.operations import Operations
from store.store import open_store
from workers.engine.commit import FailedAfterCommitError
from workers.process import current
from workers.retry import until_available

log = logging.getLogger(__name__)

OBJECTS_AWAY = (
    "The server's object storage was away for longer than CELERITY_OBJECTS_TIMEOUT allows: the operation has changed "
    "nothing. Try again when the server is ready."
)


STATES = {
    OperationStatus.PENDING: states.PENDING,
    OperationStatus.RUNNING: states.STARTED,
    OperationStatus.COMPLETED: states.SUCCESS,
    OperationStatus.FAILED: states.FAILURE,
}


class Outcome:
    """What a task returns. Celery renders a task's return value for its log, which would be slow
    and unreadable for a result of a million tokens."""

    def __init__(
        self,
        value: msgspec.Struct | None,
        metrics: OperationMetrics = NO_METRICS,
        then: Callable[[], None] | None = None,
    ) -> None:
        """`then` is called once the operation has ended with this value."""
        self.value = value
        self.metrics = metrics
        self.then = then

    def __repr__(self) -> str:
        return type(self.value).__name__


class OperationBackend(BaseBackend):
    """A task's result is its operation's: one record, written once, only by who holds the claim, and read in any
    process that has the environment of a worker."""

    @cached_property
    def _operations(self) -> Operations:
        return open_store(load_settings()).operations

    def task_result_exists(self, task_id: str) -> bool:
        return self._operations.find(task_id) is not None

    def _get_task_meta_for(self, task_id: str) -> dict[str, Any]:
        """Raises NotFoundError when the operation has COMPLETED and its result is no longer kept."""
        operation = self._operations.find(task_id)
        if operation is None:
            # What Celery says of an id that it does not know.
            return {"task_id": task_id, "status": states.PENDING, "result": None}
        ended_at = operation.ended_at
        return {
            "task_id": task_id,
            "name": operation.kind.task_name,
            "status": STATES[operation.status],
            "result": self._result(operation),
            "date_done": datetime.fromtimestamp(ended_at, UTC) if ended_at else None,
        }

    def _result(self, operation: Operation) -> Any:
        if operation.error:
            return OperationFailedError(operation.error.code, operation.error.message)
        has_result = operation.status is OperationStatus.COMPLETED and operation.kind.is_public
        return self._operations.plain_result(operation) if has_result else None

    def store_result(self, task_id: str, result: Any, state: str, *_: Any, request: Any = None, **__: Any) -> Any:
        if task_id == current().probe.id:
            if state == states.SUCCESS:
                current().probe.end()
            return result
        claim: Claim | None = getattr(request, "claim", None)
        if claim is None:
            log.warning("operation %s was not begun here; its state is left as it is", task_id)
            return result
        # Celery calls again with whatever this raises, as with a failure of the task. But then nobody knows what is in
        # the store: it begins again, in a new epoch of its session (see lost_operations.py).
        request.claim = None
        try:
            self._finish(claim, result, state)
        finally:
            current().lost_operations.ended(task_id)
        return result

    def _finish(self, claim: Claim, result: Any, state: str) -> None:
        if state == states.FAILURE:
            self._fail(claim, result)
            return
        runtime = current()
        try:
            stored = runtime.retry.until_available(
                claim, lambda: runtime.store.claims.store_result(claim, result.value), "storing the result"
            )
        except Exception as error:
            log.warning("the result of operation %s cannot be stored", claim.operation_id, exc_info=error)
            self._fail(claim, error)
            return
        finish = partial(runtime.store.claims.finish, claim, result.value, result.metrics, stored)
        if self._end(claim, finish, "COMPLETED") and result.then:
            result.then()

    def _fail(self, claim: Claim, raised: BaseException) -> None:
        """What has FAILED has changed nothing, in this worker's memory either, before anything comes after it."""
        error = operation_error(raised)
        if not KINDS[claim.kind].changed_the_adapter(error):
            current().residency.undo(claim)
        finish = partial(current().store.claims.finish, claim, error)
        self._end(claim, finish, f"FAILED ({error.code}: {error.message})")

    def _end(self, claim: Claim, finish: Callable[[], bool], ended: str) -> bool:
        """False when the claim is no longer good."""
        ids = {"session_id": claim.session_id, "operation_id": claim.operation_id}
        if not until_available(finish, f"finishing operation {claim.operation_id}"):
            log.warning("operation %s was taken away from this worker; its result is dropped", claim.operation_id)
            return False
        log.info("%s %s of session %s %s", claim.kind, claim.operation_id, claim.session_id, ended, extra=ids)
        return True


def operation_error(error: BaseException) -> OperationError:
    """What a client is told of an exception: the engine's own words, or that the fault is ours."""
    if isinstance(error, FailedAfterCommitError):
        error = error.error
    if isinstance(error, OperationFailedError):
        return error.error
    if isinstance(error, ObjectsAwayError):
        return OperationError(ErrorCode.INTERNAL_ERROR, OBJECTS_AWAY)
    return OperationError(
        ErrorCode.INTERNAL_ERROR,
        f"the operation met an unexpected {type(error).__name__}; the worker's log has the details",
    )
