"""A primary and its replica: one Valkey for whoever connects through a proxy that leads to the primary."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import redis

from stack import services
from stack.address import free_port
from stack.plan import Plan
from stack.process import Service
from tests.refusing import CONFIG
from tests.waiting import eventually

HOST = "127.0.0.1"


@dataclass(frozen=True)
class Server:
    name: str
    port: int
    data_dir: Path

    @property
    def url(self) -> str:
        return f"redis://{HOST}:{self.port}/0"

    def admin(self) -> Any:
        """A client that no proxy stands in the way of."""
        return redis.Redis(port=self.port, socket_timeout=5.0)

    def service(self, plan: Plan) -> Service:
        """As the stack would have run it, but on a port."""
        settings = msgspec.structs.replace(plan.settings, data_dir=self.data_dir.parent)
        embedded = services.valkey(dataclasses.replace(plan, settings=settings), self.data_dir / "socket", lock_fd=0)
        options = {"port": str(self.port), "bind": HOST, **CONFIG}
        more = (part for name, value in options.items() for part in (f"--{name}", value))
        return dataclasses.replace(embedded, name=self.name, command=[*embedded.command, *more], inherits=())


class Servers:
    """Two of them. Which is the primary changes with a failover."""

    def __init__(self, folder: Path) -> None:
        self.primary, self.replica = (
            Server(name, free_port(), folder / name / "valkey") for name in ("valkey-1", "valkey-2")
        )

    @property
    def folders(self) -> list[Path]:
        return [self.primary.data_dir, self.replica.data_dir]

    def replicate(self) -> None:
        """Once both run: to be asked for again whenever the replica has been started again."""
        with self.replica.admin() as admin:
            eventually(lambda: _answers(admin))
            admin.replicaof(HOST, self.primary.port)

    def await_primary(self) -> None:
        """It may be on its way up."""
        with self.primary.admin() as admin:
            eventually(lambda: _answers(admin))

    def fail_over(self) -> None:
        """As an operator does it, so that no write is lost: the replica is promoted when it has them all."""
        self.await_primary()
        with self.primary.admin() as admin:
            eventually(lambda: admin.info("replication").get("slave0", {}).get("state") == "online")
            admin.execute_command("FAILOVER", "TO", HOST, self.replica.port)
            eventually(lambda: admin.info("replication")["role"] == "slave")
        self.primary, self.replica = self.replica, self.primary


def _answers(admin: Any) -> bool:
    try:
        return bool(admin.dbsize() >= 0)
    except redis.ConnectionError:
        return False
