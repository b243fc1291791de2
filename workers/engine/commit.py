"""How a call ends: it is either cancelled by its caller or committed by the engine, never both.

A future stays pending while the engine works on its call, so that `Future.cancel` succeeds. To commit is to set the
future running: from then on it cannot be cancelled, and the call may make its changes.
"""

from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class FailedAfterCommitError(Exception):
    """A call failed in the middle of its changes, so that the adapter is in no defined state. `error` was raised."""

    def __init__(self, error: Exception) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.error = error


def commit(future: "Future[Any]") -> bool:
    """False for a cancelled call, which must change nothing. Called once, before the result is set."""
    return not future.cancelled() and future.set_running_or_notify_cancel()


def answer(future: "Future[T]", result: T) -> None:
    """Sets the result of a call that changes nothing, unless it was cancelled."""
    if commit(future):
        future.set_result(result)


def fail(future: "Future[Any]", error: Exception) -> None:
    """Sets the exception, unless the call was cancelled; after a commit, in a FailedAfterCommitError."""
    if future.running():
        future.set_exception(FailedAfterCommitError(error))
    elif commit(future):
        future.set_exception(error)
