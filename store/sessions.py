"""Sessions: created, read, listed, stopped, and removed when their time is over."""

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import count
from uuid import uuid4

from domain.checkpoint import Checkpoint
from domain.codec import encode
from domain.session import Labels, Session, SessionSpec, SessionStatus
from store import keys
from store.context import Context
from store.errors import (
    CheckpointGoneError,
    KeyReusedError,
    LimitReachedError,
    NoRoomError,
    NotFoundError,
    ResourcesStoppedError,
)
from store.idempotency import IdempotencyKey, idempotency_arguments
from store.records import SESSION_FIELDS, session_from
from store.workers import needed

PAGE = 100
NO_LABELS = Labels()


class Sessions:
    def __init__(self, context: Context) -> None:
        self._context = context

    def create(
        self,
        spec: SessionSpec,
        workers: Sequence[str],
        idempotency_key: IdempotencyKey | None = None,
        checkpoint: Checkpoint | None = None,
        labels: Labels = NO_LABELS,
        timeout_seconds: float | None = None,
    ) -> Session:
        """A new session in CREATING, its creation dispatched to the first of the `workers` that has room for it. It
        goes on from the training `checkpoint` if there is one, which may be deleted from then on. Its creation may
        take `timeout_seconds`, or else what the worker allows.

        Raises NoRoomError, KeyReusedError, LimitReachedError, CheckpointGoneError when the checkpoint was deleted
        meanwhile, and ResourcesStoppedError when its model resources are; a key that came before with
        the same body gives the first session.
        """
        session_id = str(uuid4())
        reply = self._context.scripts.run(
            "create_session",
            *workers,
            session=session_id,
            operation=str(uuid4()),
            spec=encode(spec),
            **idempotency_arguments(idempotency_key),
            owner=spec.owner,
            most_sessions=self._context.settings.max_sessions_per_key,
            checkpoint=checkpoint and checkpoint.id,
            snapshot=checkpoint and checkpoint.state_path,
            step=checkpoint.step if checkpoint and spec.load_optimizer else 0,
            resources=spec.resources_id,
            labels=encode(labels),
            size=spec.adapter_bytes,
            needed=needed(spec.adapter_bytes),
            timeout=timeout_seconds,
        )
        if reply[0] == b"no-room":
            raise NoRoomError
        if reply[0] == b"stopped":
            raise ResourcesStoppedError("the model resources are stopped")
        if reply[0] == b"gone":
            raise CheckpointGoneError("the checkpoint has been deleted")
        if reply[0] == b"reused":
            raise KeyReusedError
        if reply[0] == b"existing":
            return self.get(reply[1].decode())
        if reply[0] == b"full":
            raise LimitReachedError(f"{reply[1]} sessions of this API key have not ended yet, the most it may have")
        self._context.publish(reply[1])
        return self.get(session_id)

    def get(self, session_id: str, owner: str | None = None) -> Session:
        """The session; for an owner, if it is theirs: another's is as unknown as none. Raises NotFoundError."""
        session = session_from(session_id, self._context.redis.hmget(keys.session(session_id), SESSION_FIELDS))
        if session is None or owner not in (None, session.owner):
            raise NotFoundError("no such training session")
        return session

    def find(self, session_ids: Iterable[str]) -> list[Session | None]:
        """The sessions of many ids in one round trip, None where there is none."""
        session_ids = list(session_ids)
        with self._context.redis.pipeline(transaction=False) as pipeline:
            for session_id in session_ids:
                pipeline.hmget(keys.session(session_id), SESSION_FIELDS)
            rows = pipeline.execute()
        return [session_from(session_id, row) for session_id, row in zip(session_ids, rows, strict=True)]

    def relabel(self, session_id: str, labels: Labels) -> Session:
        """Gives the session other labels. Raises NotFoundError."""
        self.get(session_id)
        self._context.redis.hset(keys.session(session_id), "labels", encode(labels))
        return self.get(session_id)

    def stop(
        self,
        session_id: str,
        reason: str = "",
        idle_since: float | None = None,
        final: SessionStatus = SessionStatus.STOPPED,
    ) -> Session:
        """Idempotent; the session ends in the status `final`. With `idle_since`, only a session that has done nothing
        since then is stopped.

        Raises NotFoundError.
        """
        reply = self._context.scripts.run(
            "stop_session",
            session=session_id,
            id=str(uuid4()),
            reason=reason,
            idle_since=idle_since and f"{idle_since:.6f}",
            final=final,
        )
        if reply[0] == b"unknown":
            raise NotFoundError("no such training session")
        self._context.publish(reply[1])
        return self.get(session_id)

    def move(self, session_id: str, lost: str, new: str) -> bool:
        """Gives the session of a worker that is gone to another, and dispatches there what it was running.

        False when another worker holds it already, or it has ended.
        """
        settings = self._context.settings
        reply = self._context.scripts.run(
            "move_session",
            session=session_id,
            lost=lost,
            new=new,
            most_attempts=settings.most_attempts,
            most_samples=settings.max_running_samples,
        )
        if reply[0] == b"refused":
            return False
        self._context.publish(reply[1])
        return True

    def remove(self, session_id: str, idempotency_seconds: float) -> bool:
        """Removes an ended session whole; its Idempotency-Keys live on for so long."""
        removed = self._context.scripts.run(
            "remove_session", session=session_id, idempotency_seconds=int(idempotency_seconds)
        )
        return bool(removed)

    def ended_before(self, time: float) -> list[str]:
        ids = self._context.redis.zrangebyscore(keys.SESSIONS_ENDED, "-inf", time, start=0, num=1000)
        return [id.decode() for id in ids]

    def count(self) -> dict[SessionStatus, int]:
        """How many there are of each status, over all owners."""
        with self._context.redis.pipeline(transaction=False) as pipeline:
            for status in SessionStatus:
                pipeline.zcard(keys.sessions_with(status))
            return dict(zip(SessionStatus, pipeline.execute(), strict=True))

    def running(self) -> list[str]:
        ids = self._context.redis.zrange(keys.sessions_with(SessionStatus.RUNNING), 0, -1)
        return [id.decode() for id in ids]

    def newest_of_resources(self, owner: str, statuses: Iterable[SessionStatus] = ()) -> Iterator[Session]:
        """All of the owner's that belong to model resources (of any status when none is given), newest first, the id
        as tie-break; read in pages, as far as they are taken."""
        listed = keys.list_of(owner, of_resources=True)
        indexes = [keys.owner_sessions_with(listed, status) for status in statuses] or [keys.owner_sessions(listed)]
        return merge(*map(self._newest, indexes), key=lambda session: (session.created_at, session.id), reverse=True)

    def newest(self, owner: str) -> Iterator[Session]:
        """All of the owner's, whether they belong to model resources or not, newest first."""
        own = self._newest(keys.owner_sessions(keys.list_of(owner, of_resources=False)))
        of_resources = self.newest_of_resources(owner)
        return merge(own, of_resources, key=lambda session: (session.created_at, session.id), reverse=True)

    def _newest(self, index: str) -> Iterator[Session]:
        for start in count(0, PAGE):
            ids = self._context.redis.zrevrange(index, start, start + PAGE - 1)
            yield from (session for session in self.find(id.decode() for id in ids) if session)
            if len(ids) < PAGE:
                return

    def list(self, owner: str, status: SessionStatus | None, limit: int, offset: int) -> list[Session]:
        """A page of the owner's sessions that belong to no model resources."""
        listed = keys.list_of(owner, of_resources=False)
        index = keys.owner_sessions_with(listed, status) if status else keys.owner_sessions(listed)
        ids = self._context.redis.zrevrange(index, offset, offset + limit - 1)
        return [session for session in self.find(id.decode() for id in ids) if session]
