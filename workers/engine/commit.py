"""How a call ends: its caller may give it up until the engine commits it, and exactly one of the two happens.

A future stays pending while the engine works for it, so that `Future.cancel` succeeds. To commit is to set it running:
from then on it cannot be cancelled, and what it changes may change.
"""

from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class FailedAfterCommitError(Exception):
    """A call failed half-way through its changes: nobody knows what the adapter is now. `error` is what was raised."""

    def __init__(self, error: Exception) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.error = error


def commit(future: "Future[Any]") -> bool:
    """False when the caller has given up: then nothing may change. Called once, before the result is set."""
    return not future.cancelled() and future.set_running_or_notify_cancel()


def answer(future: "Future[T]", result: T) -> None:
    """Sets the result of what changes nothing, unless the caller has given up."""
    if commit(future):
        future.set_result(result)


def fail(future: "Future[Any]", error: Exception) -> None:
    """Sets what went wrong, unless the caller has given up: after it was committed, as a FailedAfterCommitError."""
    if future.running():
        future.set_exception(FailedAfterCommitError(error))
    elif commit(future):
        future.set_exception(error)
