"""What every part of the store works with: the server, its scripts, the payloads, the dispatcher."""

from typing import NamedTuple

from domain.operation import OperationKind
from settings import Settings
from store.connection import RawRedis
from store.dispatch import Dispatcher, Released
from store.payloads import Payloads
from store.scripts import Scripts


class Context(NamedTuple):
    redis: RawRedis
    scripts: Scripts
    payloads: Payloads
    dispatcher: Dispatcher
    settings: Settings

    def now(self) -> float:
        """Unix seconds by the store's clock, the one that all times in it are of."""
        seconds, microseconds = self.redis.time()
        return float(seconds + microseconds / 1e6)

    def publish(self, rows: list[list[bytes | None]]) -> None:
        """Tells the workers of the operations that a script released: rows of id, kind, worker, trace."""
        texts = [[(value or b"").decode() for value in row] for row in rows]
        self.dispatcher.publish([Released(id, OperationKind(kind), worker, trace) for id, kind, worker, trace in texts])
