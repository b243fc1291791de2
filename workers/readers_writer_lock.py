"""A readers-writer lock, with which an operation runs beside others or by itself."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class ReadersWriterLock:
    """Held by any number of threads at once as `shared`, or by one as `exclusive`. A thread that waits for `exclusive`
    goes before those that ask for `shared` after it.

    An operation that is suspected of killing its workers runs in `exclusive`, so that no other is suspected with it.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._holders = 0
        # Those that hold it as exclusive or wait to.
        self._exclusive = 0

    @contextmanager
    def shared(self) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: not self._exclusive)
            self._holders += 1
        try:
            yield
        finally:
            self._release()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        with self._changed:
            self._exclusive += 1
            self._changed.wait_for(lambda: not self._holders)
            self._holders += 1
        try:
            yield
        finally:
            self._release(exclusive=1)

    def _release(self, exclusive: int = 0) -> None:
        with self._changed:
            self._holders -= 1
            self._exclusive -= exclusive
            self._changed.notify_all()
