"""Beside whom an operation runs: with others, or alone."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Turns:
    """One that is suspected of killing its workers runs alone, so that no other is there to be suspected with it: it
    waits until those that run have ended, and all that come after it wait for it."""

    def __init__(self) -> None:
        self._change = threading.Condition()
        self._running = 0
        self._suspects = 0

    @contextmanager
    def beside_others(self) -> Iterator[None]:
        with self._change:
            self._change.wait_for(lambda: not self._suspects)
            self._running += 1
        try:
            yield
        finally:
            self._leave()

    @contextmanager
    def alone(self) -> Iterator[None]:
        with self._change:
            self._suspects += 1
            self._change.wait_for(lambda: not self._running)
            self._running += 1
        try:
            yield
        finally:
            self._leave(suspects=1)

    def _leave(self, suspects: int = 0) -> None:
        with self._change:
            self._running -= 1
            self._suspects -= suspects
            self._change.notify_all()
