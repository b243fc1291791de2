"""The workers that are alive, what they serve, and where a new session goes."""

from math import inf

import msgspec

from domain.codec import decode, encode
from domain.model import ModelCard
from domain.session import SessionSpec
from store import keys
from store.context import Context

# The heartbeat of a worker that has left.
LEFT = 0.0
# What the work on an adapter takes at its peak, in adapters (16 bytes a weight), as measured at rank 256 in a process's
# resident memory: a clipped AdamW step 2.0, a forward-backward 1.0, restoring 2.0; and 2.25 for a snapshot that is
# copied and written beside them.
WORKING_COPIES = 4


class Announcement(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker says of itself with each heartbeat.

    `models` are those that it serves, `refused` says of others that it has why it does not, by name.
    `capacity` is how many sessions it may hold, `resident` how many adapters are in its memory (the others are
    parked) and `resident_bytes` what those take by count; `free_bytes` is what its device has left by measurement, of
    which `reserved_bytes` are not for adapters, and `total_bytes` what that has, taken or free (None: it has not said).
    `decode_utilization` and `training_utilization` are the parts of the decode batch and of the token budget that
    passes filled since the last heartbeat, on average.
    """

    host: str
    pid: int
    device: str
    models: tuple[ModelCard, ...]
    refused: dict[str, str] = {}
    capacity: int
    resident: int
    resident_bytes: int
    free_bytes: int
    reserved_bytes: int
    total_bytes: int | None = None
    decode_utilization: float = 0.0
    training_utilization: float = 0.0

    @property
    def memory(self) -> int:
        """Bytes for adapters and the work on them: what is free, and what those that are here would leave if they were
        parked."""
        return self.free_bytes + self.resident_bytes - self.reserved_bytes

    @property
    def most_memory(self) -> float:
        """Bytes that `memory` never exceeds, whatever ends."""
        return inf if self.total_bytes is None else self.total_bytes - self.reserved_bytes


class Held(msgspec.Struct, frozen=True):
    """A session that a worker holds; `epoch` counts the workers that have."""

    session_id: str
    epoch: int


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """A worker as the store knows it. `heartbeat_age` is in seconds."""

    id: str
    announcement: Announcement
    session_count: int
    heartbeat_age: float

    @property
    def models(self) -> tuple[ModelCard, ...]:
        return self.announcement.models

    @property
    def room(self) -> int:
        """How many more sessions it may hold."""
        return max(0, self.announcement.capacity - self.session_count)

    def serves(self, base_model: str) -> bool:
        return any(card.name == base_model for card in self.models)


class Workers:
    def __init__(self, context: Context) -> None:
        self._context = context

    def send_probe(self, worker_id: str, probe_id: str) -> None:
        """Sends the worker a task that does nothing, as operations are sent."""
        self._context.dispatcher.send_probe(worker_id, probe_id)

    def beat(self, worker_id: str, announcement: Announcement) -> float:
        """One heartbeat; the store's time."""
        time = self._context.scripts.run(
            "beat",
            worker=worker_id,
            announcement=encode(announcement),
            capacity=announcement.capacity,
            memory=announcement.memory,
        )
        return float(time)

    def live(self) -> list[Worker]:
        """Those whose last heartbeat is younger than the heartbeat timeout."""
        timeout = self._context.settings.heartbeat_timeout
        return [worker for worker in self.known() if worker.heartbeat_age <= timeout]

    def known(self) -> list[Worker]:
        """Those that have not said that they leave, the one that beat last at the end."""
        redis, now = self._context.redis, self._context.now()
        beats = redis.zrangebyscore(keys.WORKERS, f"({LEFT}", "+inf", withscores=True)
        with redis.pipeline(transaction=False) as pipeline:
            for worker_id, _ in beats:
                pipeline.hget(keys.worker(worker_id.decode()), "announcement")
                pipeline.scard(keys.worker_sessions(worker_id.decode()))
            values = pipeline.execute()
        return [
            Worker(
                id=worker_id.decode(),
                announcement=decode(announcement, Announcement),
                session_count=session_count,
                heartbeat_age=max(0.0, now - beat),
            )
            for (worker_id, beat), announcement, session_count in zip(beats, values[::2], values[1::2], strict=True)
            if announcement is not None
        ]

    def lost(self) -> list[str]:
        """The ids of those whose heartbeat is older than the timeout."""
        ids = self._context.redis.zrangebyscore(keys.WORKERS, "-inf", f"({self._oldest_live_beat()}")
        return [id.decode() for id in ids]

    def leave(self, worker_id: str) -> None:
        """Says that a worker is gone for good, so that nobody waits for its heartbeat, and what it still runs is not
        said to have killed it."""
        self._context.redis.zadd(keys.WORKERS, {worker_id: LEFT})

    def left(self) -> list[str]:
        """The ids of those that said so and still hold something."""
        return [id.decode() for id in self._context.redis.zrangebyscore(keys.WORKERS, LEFT, LEFT)]

    def candidates(self, spec: SessionSpec) -> list[str]:
        """The live workers that serve the model, the one with most room first; for a model that none has at hand (a hub
        id), all."""
        serving = _serving(self.live(), spec)
        serving.sort(key=lambda worker: (worker.room, worker.announcement.free_bytes, worker.id), reverse=True)
        return [worker.id for worker in serving]

    def most_memory(self, spec: SessionSpec) -> float:
        """Bytes that the largest of those could ever have for adapters, also of one that is away just now."""
        return max((worker.announcement.most_memory for worker in _serving(self.known(), spec)), default=inf)

    def held(self, worker_id: str, owner: str) -> list[Held]:
        """The owner's sessions among those that the worker holds, by id."""
        ids = sorted(self.sessions(worker_id))
        with self._context.redis.pipeline(transaction=False) as pipeline:
            for session_id in ids:
                pipeline.hmget(keys.session(session_id), "owner", "epoch")
            rows = pipeline.execute()
        return [Held(id, int(epoch)) for id, (whose, epoch) in zip(ids, rows, strict=True) if whose == owner.encode()]

    def sessions(self, worker_id: str) -> set[str]:
        """The sessions that the worker holds."""
        return {id.decode() for id in self._context.redis.smembers(keys.worker_sessions(worker_id))}

    def forget(self, worker_id: str) -> bool:
        """Removes a worker that holds nothing any more, and its queue; False when it does hold something."""
        forgotten = bool(self._context.scripts.run("forget_worker", worker=worker_id))
        if forgotten:
            self._context.dispatcher.forget(worker_id)
        return forgotten

    def _oldest_live_beat(self) -> float:
        return self._context.now() - self._context.settings.heartbeat_timeout


def _serving(workers: list[Worker], spec: SessionSpec) -> list[Worker]:
    return [worker for worker in workers if worker.serves(spec.base_model.name)] or workers


def needed(adapter_bytes: int) -> int:
    """Memory for an adapter and for what is done with it."""
    return (1 + WORKING_COPIES) * adapter_bytes
