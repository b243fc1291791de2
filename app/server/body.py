"""The body of a request, as it comes."""

from collections.abc import Awaitable, Callable
from typing import Any

from domain.limits import LEAST_BODY_LIMIT

SMALL_BODY = LEAST_BODY_LIMIT
"""A body up to this size is read before anyone is asked: so much every connection may cost."""

Receive = Callable[[], Awaitable[Any]]


class ClientGoneError(Exception):
    """The client has disconnected."""


class Body:
    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._pieces: list[bytes] = []
        self.size = 0
        self.is_whole = False

    async def read(self, until: int) -> None:
        """Reads on until it is whole, or larger than `until`. Raises ClientGoneError."""
        while not self.is_whole and self.size <= until:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientGoneError
            piece = message.get("body", b"")
            self._pieces.append(piece)
            self.size += len(piece)
            self.is_whole = not message.get("more_body", False)

    def take(self) -> bytes:
        """All of it, which is no longer kept here."""
        pieces, self._pieces = self._pieces, []
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)
