"""The workers that are alive, what they serve, and where a new session goes."""

import msgspec

from contract.codec import decode, encode
from contract.model import ModelCard
from store import keys
from store.context import Context
from store.errors import NoRoomError

# The heartbeat of a worker that has left.
LEFT = 0.0


class Announcement(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker says of itself with each heartbeat.

    `capacity` is how many sessions it may hold, `resident` how many adapters are in its memory (the others are
    parked), `free_bytes` what its device has left; below its reserve it takes no new session.
    """

    host: str
    pid: int
    device: str
    models: tuple[ModelCard, ...]
    capacity: int
    resident: int
    free_bytes: int
    reserved_bytes: int


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """A live worker. `heartbeat_at` is in Unix seconds by the store's clock."""

    id: str
    announcement: Announcement
    session_count: int
    heartbeat_at: float

    @property
    def models(self) -> tuple[ModelCard, ...]:
        return self.announcement.models

    @property
    def room(self) -> int:
        """How many more sessions it takes."""
        said = self.announcement
        return 0 if said.free_bytes < said.reserved_bytes else max(0, said.capacity - self.session_count)

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
        redis = self._context.redis
        beats = redis.zrangebyscore(keys.WORKERS, self._oldest_live_beat(), "+inf", withscores=True)
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
                heartbeat_at=beat,
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

    def place(self, base_model: str) -> str | None:
        """The live worker with most room among those that serve the model; for a model that none has
        at hand (a hub id), among all. None when no worker is alive.

        Raises NoRoomError when they are all full.
        """
        live = self.live()
        candidates = [worker for worker in live if worker.serves(base_model)] or live
        if not candidates:
            return None
        best = max(candidates, key=lambda worker: (worker.room, worker.announcement.free_bytes, worker.id))
        if not best.room:
            raise NoRoomError
        return best.id

    def adopter(self, base_model: str) -> str | None:
        """The live worker for a session that has lost its own: `place`, but never refused, since the session is
        accepted already."""
        live = self.live()
        candidates = [worker for worker in live if worker.serves(base_model)] or live
        return max(candidates, key=lambda worker: (worker.room, worker.id)).id if candidates else None

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
