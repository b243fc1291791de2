"""The application's answer to one request: called, and taken out of it, in a thread."""

from collections.abc import Callable, Iterable
from typing import Any

from app.server.environ import Environ

BATCH_BYTES = 256 * 1024
"""Of an answer that is made while it is sent, so much is made before it is known that the client reads."""

Application = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]


class Answer:
    """`status` and `headers` are there at once, the body piece by piece."""

    def __init__(self, application: Application, environ: Environ) -> None:
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.batch: list[bytes] = []
        self.is_whole = False
        self._made = application(environ, self._start)
        self._pieces = iter(self._made)
        self.make_batch()

    def make_batch(self) -> None:
        """Puts the next pieces of the body into `batch`, the last of them when `is_whole`."""
        self.batch, size = [], 0
        for piece in self._pieces:
            self.batch.append(piece)
            size += len(piece)
            if size >= BATCH_BYTES:
                return
        self.close()

    def close(self) -> None:
        """Ends it, whether or not all of it was made."""
        self.is_whole = True
        if close := getattr(self._made, "close", None):
            close()

    def _start(self, status: str, headers: list[tuple[str, str]], _: Any = None) -> None:
        self.status = int(status[:3])
        self.headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
