"""Celery's Redis result backend, with the store's atomic finish as its store step."""

import logging
from collections.abc import Callable
from typing import Any

import msgspec
from celery import states
from celery.backends.redis import RedisBackend

from contract.figures import NO_FIGURES, Figures
from contract.operation import ErrorCode, OperationError, OperationFailedError
from contract.redis_url import RedisUrl
from store.claims import Claim
from workers.patience import persist
from workers.process import current

log = logging.getLogger(__name__)


def backend_settings(url: RedisUrl) -> dict[str, Any]:
    """Celery's settings for this backend, on the store's own server."""
    return {
        "result_backend": f"{__name__}.{OperationBackend.__name__}+{url.backend_url}",
        # Told nothing, Celery would refuse each task.
        "redis_backend_use_ssl": url.tls,
    }


class Outcome:
    """What a task returns. Celery renders a task's return value for its log, which would be slow
    and unreadable for a result of a million tokens."""

    def __init__(
        self, value: msgspec.Struct | None, figures: Figures = NO_FIGURES, then: Callable[[], None] | None = None
    ) -> None:
        """`then` is called once the operation has ended with this value."""
        self.value = value
        self.figures = figures
        self.then = then

    def __repr__(self) -> str:
        return type(self.value).__name__


class OperationBackend(RedisBackend):
    """A task's result is its operation's: one record, written once, only by who holds the claim."""

    def store_result(self, task_id: str, result: Any, state: str, *_: Any, request: Any = None, **__: Any) -> Any:
        if task_id == current().probe.id:
            return self._end_probe(result, state)
        claim: Claim | None = getattr(request, "claim", None)
        if claim is None:
            log.warning("operation %s was not begun here; its state is left as it is", task_id)
            return result
        try:
            self._finish(claim, task_id, result, state)
        finally:
            current().stranded.leave(task_id)
        return result

    def _end_probe(self, result: Any, state: str) -> Any:
        self.client.ping()
        if state == states.SUCCESS:
            current().probe.end()
        return result

    def _finish(self, claim: Claim, task_id: str, result: Any, state: str) -> None:
        error = operation_error(result) if state == states.FAILURE else None
        outcome, figures = (error, NO_FIGURES) if error else (result.value, result.figures)
        if not persist(
            lambda: current().store.claims.finish(claim, outcome, figures), f"finishing operation {task_id}"
        ):
            log.warning("operation %s was taken away from this worker; its result is dropped", task_id)
        else:
            ended = f"FAILED ({error.code}: {error.message})" if error else "COMPLETED"
            if not error and result.then:
                result.then()
            ids = {"session_id": claim.session_id, "operation_id": task_id}
            log.info("%s %s of session %s %s", claim.kind, task_id, claim.session_id, ended, extra=ids)


def operation_error(error: BaseException) -> OperationError:
    """What a client is told of an exception: the engine's own words, or that the fault is ours."""
    if isinstance(error, OperationFailedError):
        return error.error
    return OperationError(
        ErrorCode.INTERNAL_ERROR,
        f"the operation met an unexpected {type(error).__name__}; the worker's log has the details",
    )
