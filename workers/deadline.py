"""When an operation has run for long enough."""

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait
from typing import TypeVar

from contract.operation import ErrorCode, OperationFailedError, OperationKind
from contract.time_limits import setting_of

T = TypeVar("T")


class Deadline:
    """The end of the time that an operation of a kind may run: `seconds` from now, by this process's clock, or never.

    Only one thread waits for it, the operation's own: what happens to the operation is decided there, once.
    """

    def __init__(self, kind: OperationKind, seconds: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._kind, self._seconds, self._clock = kind, seconds, clock
        self._began = clock()

    @property
    def remaining(self) -> float | None:
        """Seconds, at least 0; None for one that never comes."""
        return None if self._seconds is None else max(0.0, self._began + self._seconds - self._clock())

    def check(self) -> None:
        """Raises OperationFailedError, TIMEOUT, once it has passed."""
        if self.remaining == 0:
            raise self._passed()

    def answer(self, future: "Future[T]") -> T:
        """What the engine answers. A call that is not committed when the time is up is given up, and so has changed
        nothing; one that is committed is waited for.

        Raises OperationFailedError, TIMEOUT for one that was given up.
        """
        wait([future], self.remaining)
        # One that has ended, or is committed, cannot be cancelled.
        if future.cancel():
            raise self._passed()
        return future.result()

    def within(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """The chunks, as long as there is time. Raises OperationFailedError, TIMEOUT."""
        for chunk in chunks:
            self.check()
            yield chunk

    def _passed(self) -> OperationFailedError:
        happened, advice = _SENTENCES.get(self._kind, _SENTENCE)
        return OperationFailedError(
            ErrorCode.TIMEOUT,
            f"{happened.format(kind=self._kind, seconds=f'{self._seconds:g} s')} {advice}, or allow more time: "
            f"timeout_seconds, up to the server's {setting_of(self._kind)}.",
        )


_SENTENCE = (
    "This {kind} ran for longer than its limit of {seconds} and was stopped: it has changed nothing.",
    "Ask for less in one call",
)
_SENTENCES = {
    OperationKind.CREATE_SESSION: (
        "The session's adapter was not in its worker's memory within {seconds}: its base model was still being fetched "
        "or loaded, or the adapters of others left no room.",
        "Try again",
    )
}
