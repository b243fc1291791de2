"""A TCP proxy between clients and a server, which a test may interrupt."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self
from urllib.parse import urlsplit

CHUNK_BYTES = 65536


class TcpProxy:
    """On a port of this host. `cut` ends every connection and refuses new ones; `blackhole` leaves them open and
    carries nothing any more, on those that there are never again. `restore` lets new ones through."""

    def __init__(self, url: str) -> None:
        self.lead_to(url)
        self._connections: set[Connection] = set()
        self._lock = threading.Lock()
        self._is_blackhole = False
        self._listener = self._listen(0)
        self._port = self._listener.getsockname()[1]

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    @property
    def url(self) -> str:
        """For a proxy of a Redis server."""
        return f"redis://{self.address}/0"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.cut()

    def lead_to(self, url: str) -> None:
        """Of new connections. Those that there are stay."""
        target = urlsplit(url)
        self._target = (target.hostname or "", target.port or 6379)

    def cut(self) -> None:
        close(self._listener)
        self.drop_connections()

    def drop_connections(self) -> None:
        with self._lock:
            for connection in self._connections:
                connection.close()
            self._connections.clear()

    def blackhole(self) -> None:
        with self._lock:
            self._is_blackhole = True
            for connection in self._connections:
                connection.is_blackhole.set()

    def restore(self) -> None:
        with self._lock:
            self._is_blackhole = False
        if self._listener.fileno() == -1:
            self._listener = self._listen(self._port)

    def _listen(self, port: int) -> socket.socket:
        listener = socket.create_server(("127.0.0.1", port), backlog=128)
        threading.Thread(target=self._accept_all, args=(listener,), daemon=True).start()
        return listener

    def _accept_all(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:  # closed by `cut`
                return
            self.connect(near)

    def carry(self, data: bytes, sink: socket.socket) -> None:
        """Of one connection, in one direction."""
        sink.sendall(data)

    def connect(self, near: socket.socket) -> None:
        """Lead a new connection to the server."""
        try:
            far = socket.create_connection(self._target)
        except OSError:
            close(near)
            return
        connection = Connection(near, far, self.carry)
        with self._lock:
            if self._is_blackhole:
                connection.is_blackhole.set()
            self._connections = {each for each in self._connections if each.is_open}
            self._connections.add(connection)
        connection.start()


class Connection:
    """Two ends, and a thread for each direction between them."""

    def __init__(self, near: socket.socket, far: socket.socket, carry: Callable[[bytes, socket.socket], None]) -> None:
        self._near, self._far, self._carry = near, far, carry
        self.is_blackhole = threading.Event()

    @property
    def is_open(self) -> bool:
        return self._near.fileno() != -1

    def start(self) -> None:
        for source, sink in ((self._near, self._far), (self._far, self._near)):
            threading.Thread(target=self._carry_all, args=(source, sink), daemon=True).start()

    def close(self) -> None:
        close(self._near)
        close(self._far)

    def _carry_all(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):  # closed by either side
            while data := source.recv(CHUNK_BYTES):
                if not self.is_blackhole.is_set():
                    self._carry(data, sink)
        if not self.is_blackhole.is_set():
            self.close()


def close(end: socket.socket) -> None:
    """Wakes whoever reads from it, too."""
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
