"""The line between a stack and its server, which a test may cut."""

import socket
import threading
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

CHUNK_BYTES = 65536


class Line:
    """A TCP proxy on a port of this host. `cut` ends every connection and refuses new ones; `hush` leaves them open
    and carries nothing any more, on those that there are never again. `mend` lets new ones through."""

    def __init__(self, url: str) -> None:
        target = urlsplit(url)
        self._target = (target.hostname or "", target.port or 6379)
        self._connections: list[Connection] = []
        self._lock = threading.Lock()
        self._is_up = True
        self._listener = self._listen(0)
        self._port = self._listener.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self._port}/0"

    def __enter__(self) -> "Line":
        return self

    def __exit__(self, *_: Any) -> None:
        self.cut()

    def cut(self) -> None:
        _close(self._listener)
        with self._lock:
            for connection in self._connections:
                connection.close()
            self._connections.clear()

    def hush(self) -> None:
        with self._lock:
            self._is_up = False
            for connection in self._connections:
                connection.hushed.set()

    def mend(self) -> None:
        with self._lock:
            self._is_up = True
        if self._listener.fileno() == -1:
            self._listener = self._listen(self._port)

    def _listen(self, port: int) -> socket.socket:
        listener = socket.create_server(("127.0.0.1", port), backlog=128)
        threading.Thread(target=self._accept_all, args=(listener,), daemon=True).start()
        return listener

    def _accept_all(self, listener: socket.socket) -> None:
        with suppress(OSError):  # closed by `cut`
            while True:
                near, _ = listener.accept()
                with self._lock:
                    connection = Connection(near, socket.create_connection(self._target))
                    if not self._is_up:
                        connection.hushed.set()
                    self._connections.append(connection)
                connection.start()


class Connection:
    """Two ends, and a thread for each direction between them."""

    def __init__(self, near: socket.socket, far: socket.socket) -> None:
        self._near, self._far = near, far
        self.hushed = threading.Event()

    def start(self) -> None:
        for source, sink in ((self._near, self._far), (self._far, self._near)):
            threading.Thread(target=self._carry, args=(source, sink), daemon=True).start()

    def close(self) -> None:
        _close(self._near)
        _close(self._far)

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):  # closed by either side
            while data := source.recv(CHUNK_BYTES):
                if not self.hushed.is_set():
                    sink.sendall(data)
        if not self.hushed.is_set():
            self.close()


def _close(end: socket.socket) -> None:
    """Wakes whoever reads from it, too."""
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
