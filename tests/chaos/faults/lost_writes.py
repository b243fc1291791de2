"""The last writes that Redis has acknowledged are forgotten, as after a power loss."""

import random

from tests.chaos.deployment import Deployment


class RecentWrites:
    """Those since it was made."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._file = max(deployment.servers.primary.data_dir.glob("appendonlydir/*.incr.aof"))
        self._size = self._file.stat().st_size

    def lose_tail(self, rng: random.Random) -> None:
        """The server is killed, and its append-only file ends at a random place among them."""
        process = self._deployment.processes[self._deployment.servers.primary.name]
        process.kill()
        with self._file.open("r+b") as file:
            file.truncate(rng.randint(self._size, self._file.stat().st_size))
        self._deployment.run(process.service)
