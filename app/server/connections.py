"""All connections of a process: how many there may be, and who has to keep a pace."""

import asyncio
from typing import TYPE_CHECKING

from uvicorn.server import ServerState

if TYPE_CHECKING:
    from app.server.connection import Connection

SECONDS_BETWEEN_CHECKS = 0.5


class Connections(ServerState):
    """`most` of them at once: one more takes the place of the one that has been silent for longest.

    `grace` is how many seconds a peer may take before it has to keep a pace.
    """

    def __init__(self, most: int, grace: float) -> None:
        super().__init__()
        self.grace = grace
        self._most = most
        # Those without a request that is being read or answered; the longest silent first.
        self._silent: dict[Connection, None] = {}

    def is_silent(self, connection: "Connection") -> None:
        self._silent.pop(connection, None)
        self._silent[connection] = None
        if len(self.connections) > self._most:
            self._end(next(iter(self._silent)))

    def is_busy(self, connection: "Connection") -> None:
        self._silent.pop(connection, None)

    def is_lost(self, connection: "Connection") -> None:
        self._silent.pop(connection, None)

    async def watch(self) -> None:
        """Until it is cancelled."""
        while True:
            await asyncio.sleep(SECONDS_BETWEEN_CHECKS)
            now = asyncio.get_running_loop().time()
            for connection in list(self.connections):
                connection.check(now)  # type: ignore[union-attr]  # all of them are ours

    def _end(self, connection: "Connection") -> None:
        self._silent.pop(connection)
        self.connections.discard(connection)
        connection.transport.abort()
