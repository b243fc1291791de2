"""The workers that are alive, what they serve, and where a new session goes."""

from collections import Counter

import msgspec

from contract.codec import decode, encode
from contract.model import ModelCard
from contract.session import SessionSpec, SessionStatus
from store import keys
from store.context import Context
from store.errors import NoRoomError

# The heartbeat of a worker that has left.
LEFT = 0.0
# Copies of an adapter that a step or a snapshot makes while it is under way.
WORKING_COPIES = 2


class Announcement(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker says of itself with each heartbeat.

    `capacity` is how many sessions it may hold, `resident` how many adapters are in its memory (the others are
    parked) and `resident_bytes` what those take by count; `free_bytes` is what its device has left by measurement, of
    which `reserved_bytes` are not for adapters.
    """

    host: str
    pid: int
    device: str
    models: tuple[ModelCard, ...]
    capacity: int
    resident: int
    resident_bytes: int
    free_bytes: int
    reserved_bytes: int


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

    def has_memory_for(self, adapter_bytes: int, promised: int) -> bool:
        """Whether the adapter would fit, if those that are here were parked for it, beside the `promised` bytes of
        sessions that are being created."""
        said = self.announcement
        return said.free_bytes + said.resident_bytes - promised >= needed(adapter_bytes) + said.reserved_bytes

    def serves(self, base_model: str) -> bool:
        return any(card.name == base_model for card in self.models)


class Workers:
    def __init__(self, context: Context) -> None:
        self._context = context

    def beat(self, worker_id: str, announcement: Announcement) -> float:
        """One heartbeat; the store's time."""
        return float(self._context.scripts.run("beat", worker_id, encode(announcement)))

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
                pipeline.get(keys.worker(worker_id.decode()))
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
        """Says that a worker is gone for good, so that nobody waits for its heartbeat."""
        self._context.redis.zadd(keys.WORKERS, {worker_id: LEFT})

    def left(self) -> list[str]:
        """The ids of those that said so and still hold something."""
        return [id.decode() for id in self._context.redis.zrangebyscore(keys.WORKERS, LEFT, LEFT)]

    def place(self, spec: SessionSpec) -> str | None:
        """The candidate for a new session that has most room. None when no worker is alive.

        Raises NoRoomError when they are all full.
        """
        candidates = self._candidates(spec)
        if not candidates:
            return None
        size, promised = spec.adapter_bytes, self._promised()
        fitting = [each for each in candidates if each.room and each.has_memory_for(size, promised[each.id])]
        if not fitting:
            raise NoRoomError
        return _roomiest(fitting)

    def adopter(self, spec: SessionSpec) -> str | None:
        """The candidate for a session that has lost its own worker: never refused, since the session is accepted."""
        candidates = self._candidates(spec)
        return _roomiest(candidates) if candidates else None

    def _candidates(self, spec: SessionSpec) -> list[Worker]:
        """The live workers that serve the model; for one that none has at hand (a hub id), all."""
        live = self.live()
        return [worker for worker in live if worker.serves(spec.base_model.name)] or live

    def _promised(self) -> Counter[str]:
        """Bytes of the adapters that each worker is yet to create, which no measurement shows."""
        redis, promised = self._context.redis, Counter[str]()
        with redis.pipeline(transaction=False) as pipeline:
            for session_id in redis.zrange(keys.sessions_with(SessionStatus.CREATING), 0, -1):
                pipeline.hmget(keys.session(session_id.decode()), "worker", "spec")
            for worker_id, spec in pipeline.execute():
                promised[worker_id.decode()] += decode(spec, SessionSpec).adapter_bytes
        return promised

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
        forgotten = bool(self._context.scripts.run("forget_worker", worker_id))
        if forgotten:
            self._context.dispatcher.forget(worker_id)
        return forgotten

    def _oldest_live_beat(self) -> float:
        return self._context.now() - self._context.settings.heartbeat_timeout


def needed(adapter_bytes: int) -> int:
    """Memory for an adapter and for what is done with it."""
    return (1 + WORKING_COPIES) * adapter_bytes


def _roomiest(workers: list[Worker]) -> str:
    return max(workers, key=lambda worker: (worker.room, worker.announcement.free_bytes, worker.id)).id
