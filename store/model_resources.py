"""Model resources: made, read, listed, kept longer, stopped, and expired with their sessions."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count, islice
from typing import Any
from uuid import uuid4

from domain.codec import decode, encode
from domain.model_resources import ModelResources, ModelResourcesSpec, ModelResourcesStatus
from domain.session import SessionStatus
from store import keys
from store.context import Context
from store.errors import KeyReusedError, NotFoundError, ResourcesStoppedError
from store.idempotency import IdempotencyKey, idempotency_arguments
from store.sessions import Sessions

FIELDS = ("spec", "status", "created_at", "updated_at", "kept_until", "used_at")
READY = keys.resources_with(ModelResourcesStatus.READY)
STOPPED = keys.resources_with(ModelResourcesStatus.STOPPED)
EXPIRED = "the model resources were inactive for longer than their inactive_timeout"
PAGE = 100
HOUR = 3600.0


class AllModelResources:
    """Nothing is allocated for them: workers take sessions as they come. They bound how long sessions live."""

    def __init__(self, context: Context, sessions: Sessions) -> None:
        self._context = context
        self._sessions = sessions

    def create(self, spec: ModelResourcesSpec, idempotency_key: IdempotencyKey | None = None) -> ModelResources:
        """Raises KeyReusedError; a key that came before with the same body gives the first ones."""
        resources_id = str(uuid4())
        reply = self._context.scripts.run(
            "create_resources",
            id=resources_id,
            spec=encode(spec),
            owner=spec.owner,
            timeout=spec.inactive_timeout,
            **idempotency_arguments(idempotency_key),
        )
        if reply[0] == b"reused":
            raise KeyReusedError
        return self.get(reply[1].decode() if reply[0] == b"existing" else resources_id, spec.owner)

    def get(self, resources_id: str, owner: str) -> ModelResources:
        """Raises NotFoundError, for another owner's as for none."""
        found = self._find([resources_id])
        if not found or found[0].spec.owner != owner:
            raise NotFoundError("no such model resources")
        return found[0]

    def _find(self, ids: Sequence[str]) -> list[ModelResources]:
        """Those of many ids that there are, in two round trips."""
        with self._context.redis.pipeline(transaction=False) as pipeline:
            for id in ids:
                pipeline.hmget(keys.resources(id), FIELDS)
            for id in ids:
                pipeline.smembers(keys.resources_sessions(id))
            replies = pipeline.execute()
        rows, attached = replies[: len(ids)], replies[len(ids) :]
        sessions = iter(self._sessions.find(id.decode() for id in chain.from_iterable(attached)))
        used_at = [
            max((each.updated_at for each in islice(sessions, len(own)) if each), default=0.0) for own in attached
        ]
        return [_resources(*each) for each in zip(ids, rows, used_at, strict=True) if each[1][0] is not None]

    def newest(self, owner: str) -> Iterator[ModelResources]:
        """All of the owner's, newest first; read as far as they are taken."""
        for start in count(0, PAGE):
            ids = self._context.redis.zrevrange(keys.owner_resources(owner), start, start + PAGE - 1)
            yield from self._find([id.decode() for id in ids])
            if len(ids) < PAGE:
                return

    def extend(self, resources_id: str, seconds: float) -> None:
        """They stay for at least so long from now. Raises ResourcesStoppedError."""
        redis, key, until = self._context.redis, keys.resources(resources_id), self._context.now() + seconds
        if redis.hget(key, "status") != b"READY":
            raise ResourcesStoppedError("the model resources are stopped")
        redis.hset(key, "kept_until", max(until, float(redis.hget(key, "kept_until") or 0)))

    def stop(self, resources_id: str, *, force: bool, idempotency_key: IdempotencyKey | None = None) -> None:
        """With force, their sessions are stopped too. Raises ResourcesStoppedError when they are stopped already, or
        have active sessions and there is no force; and KeyReusedError."""
        reply = self._context.scripts.run(
            "stop_resources",
            id=resources_id,
            mode="force" if force else None,
            **idempotency_arguments(idempotency_key),
        )
        if reply[0] == b"reused":
            raise KeyReusedError
        if reply[0] == b"over":
            raise ResourcesStoppedError("the model resources are stopped already")
        if reply[0] == b"active":
            raise ResourcesStoppedError(f"{reply[1]} sessions are active; stop them, or ask with force=true")
        if reply[0] == b"stopped":
            self._stop_all(reply[1], SessionStatus.STOPPED)
        if reply[0] == b"existing":
            self._finish_stopping(resources_id)

    def sweep(self) -> None:
        """Expires what nothing has used for long, and removes what was stopped long ago."""
        for id in self._context.redis.zrange(READY, 0, -1):
            reply = self._context.scripts.run("stop_resources", id=id, mode="expire", **idempotency_arguments(None))
            if reply[0] == b"stopped":
                self._stop_all(reply[1], SessionStatus.EXPIRED)
        now = self._context.now()
        for id in self._context.redis.zrangebyscore(STOPPED, now - HOUR, "+inf"):
            self._finish_stopping(id.decode())
        for id in self._context.redis.zrangebyscore(STOPPED, "-inf", now - self._context.settings.session_retention):
            self._remove(id.decode())

    def _finish_stopping(self, resources_id: str) -> None:
        """Stops the sessions that a process which died meanwhile, or lost Redis, has left running."""
        final = self._context.redis.hget(keys.resources(resources_id), "final")
        ids = self._context.redis.smembers(keys.resources_sessions(resources_id))
        self._stop_all(ids, SessionStatus(final.decode()))

    def _stop_all(self, ids: Iterable[bytes], final: SessionStatus) -> None:
        reason = EXPIRED if final is SessionStatus.EXPIRED else ""
        for session_id in ids:
            self._sessions.stop(session_id.decode(), reason, final=final)

    def _remove(self, resources_id: str) -> None:
        """Once the last of their sessions has been removed."""
        found = self._find([resources_id])
        if found and not int(self._context.redis.hget(keys.resources(resources_id), "sessions") or 0):
            self._context.redis.zrem(keys.owner_resources(found[0].spec.owner), resources_id)
            self._context.redis.zrem(STOPPED, resources_id)
            self._context.redis.delete(keys.resources(resources_id))


def _resources(resources_id: str, row: list[Any], used_by_sessions_at: float) -> ModelResources:
    """From the values of FIELDS, and when an active session last used them."""
    spec, status, created_at, updated_at, kept_until, used_at = row
    known, ready = decode(spec, ModelResourcesSpec), status == b"READY"
    # By an active session, or else when one ended, or they were made.
    last_used = max(float(used_at or created_at), used_by_sessions_at)
    return ModelResources(
        id=resources_id,
        spec=known,
        status=ModelResourcesStatus(status.decode()),
        created_at=float(created_at),
        updated_at=float(updated_at),
        expires_at=max(last_used + known.inactive_timeout, float(kept_until or 0)) if ready else None,
    )
