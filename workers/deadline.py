"""Time limits of operations."""

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from threading import Lock
from typing import TypeVar

from domain.operation import ErrorCode, OperationFailedError, OperationKind
from domain.time_limits import setting_of
from workers.engine.commit import FailedAfterCommitError

T = TypeVar("T")


class Deadline:
    """Ends `seconds` from now by this process's clock, or never; `kind` is the operation's.

    Used by the operation's own thread only, which decides how the operation ends. `committed` says whether the engine
    has committed the call that was awaited: it has a result, or failed in the middle of its changes.
    """

    def __init__(self, kind: OperationKind, seconds: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._kind, self._seconds, self._clock = kind, seconds, clock
        self._began = clock()
        self.committed = False

    @property
    def remaining(self) -> float | None:
        """Seconds, at least 0; None without a limit."""
        return None if self._seconds is None else max(0.0, self._began + self._seconds - self._clock())

    def check(self) -> None:
        """Raises OperationFailedError, TIMEOUT, after the deadline."""
        if self.remaining == 0:
            raise self._passed()

    def answer(self, future: "Future[T]") -> T:
        """The future's result. A call that is not committed at the deadline is cancelled, and has changed nothing; one
        that is committed is waited for.

        Raises OperationFailedError, TIMEOUT for a call that was cancelled, and what the engine raised.
        """
        wait([future], self.remaining)
        # One that has ended, or is committed, cannot be cancelled.
        if future.cancel():
            raise self._passed()
        error = future.exception()
        self.committed = error is None or isinstance(error, FailedAfterCommitError)
        return future.result()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stops the clock inside the context."""
        paused_at = self._clock()
        try:
            yield
        finally:
            self._began += self._clock() - paused_at

    @contextmanager
    def holding(self, lock: Lock) -> Iterator[None]:
        """Holds the lock, once it is free. Raises OperationFailedError, TIMEOUT, when it is not free in time."""
        remaining = self.remaining
        if not lock.acquire(timeout=-1 if remaining is None else remaining):
            raise self._passed()
        try:
            yield
        finally:
            lock.release()

    def within(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """The chunks until the deadline. Raises OperationFailedError, TIMEOUT, after it."""
        for chunk in chunks:
            self.check()
            yield chunk

    def _passed(self) -> OperationFailedError:
        return OperationFailedError(ErrorCode.TIMEOUT, self._sentence(f"{self._seconds:g} s"))

    def _sentence(self, limit: str) -> str:
        happened, advice = _SENTENCES.get(self._kind, _SENTENCE)
        return (
            f"{happened.format(kind=self._kind, limit=limit)} {advice}, or allow more time: "
            f"timeout_seconds, up to the server's {setting_of(self._kind)}."
        )


class RestoreDeadline(Deadline):
    """For bringing a session back into memory for its next operation."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(OperationKind.CREATE_SESSION, seconds, clock)

    def _sentence(self, limit: str) -> str:
        return (
            f"The session was not back in its worker's memory within {limit}: {_HELD_UP} The operation has changed "
            f"nothing. Try again; the server's {setting_of(self._kind)} allows more time, no field of a request does."
        )


_HELD_UP = "its base model was still being fetched or loaded, or the adapters of others left no room."
_SENTENCE = (
    "This {kind} ran for longer than its limit of {limit} and was stopped: it has changed nothing.",
    "Ask for less in one call",
)
_SENTENCES = {
    OperationKind.CREATE_SESSION: (
        f"The session's adapter was not in its worker's memory within {{limit}}: {_HELD_UP}",
        "Try again",
    )
}
