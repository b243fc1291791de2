"""Model resources: made, read, listed, kept longer, stopped, and expired with their sessions."""

from collections.abc import Iterable, Iterator
from itertools import count
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
        found = self._find(resources_id)
        if found is None or found.spec.owner != owner:
            raise NotFoundError("no such model resources")
        return found

    def _find(self, resources_id: str) -> ModelResources | None:
        spec, status, created_at, updated_at, kept_until, used_at = self._context.redis.hmget(
            keys.resources(resources_id), FIELDS
        )
        if spec is None:
            return None
        known, ready = decode(spec, ModelResourcesSpec), status == b"READY"
        expires_at = self._last_used(resources_id, float(used_at or created_at)) + known.inactive_timeout
        return ModelResources(
            id=resources_id,
            spec=known,
            status=ModelResourcesStatus(status.decode()),
            created_at=float(created_at),
            updated_at=float(updated_at),
            expires_at=max(expires_at, float(kept_until or 0)) if ready else None,
        )

    def _last_used(self, resources_id: str, before: float) -> float:
        """By an active session, or else `before`: when one ended, or they were made."""
        ids = [id.decode() for id in self._context.redis.smembers(keys.resources_sessions(resources_id))]
        return max([before, *(session.updated_at for session in self._sessions.find(ids) if session)])

    def newest(self, owner: str) -> Iterator[ModelResources]:
        """All of the owner's, newest first; read as far as they are taken."""
        for start in count(0, PAGE):
            ids = self._context.redis.zrevrange(keys.owner_resources(owner), start, start + PAGE - 1)
            yield from (found for id in ids if (found := self._find(id.decode())))
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
        found = self._find(resources_id)
        if found and not int(self._context.redis.hget(keys.resources(resources_id), "sessions") or 0):
            self._context.redis.zrem(keys.owner_resources(found.spec.owner), resources_id)
            self._context.redis.zrem(STOPPED, resources_id)
            self._context.redis.delete(keys.resources(resources_id))
