"""One effect per Idempotency-Key: what a key was first used for, and the answer it got."""

from typing import Any

import msgspec

from settings import DAY
from store import keys
from store.context import Context
from store.errors import KeyReusedError


class IdempotencyKey(msgspec.Struct, frozen=True):
    """A client's Idempotency-Key, what it counts for (`scope`: a caller and a path), and the SHA-256 of its body."""

    scope: str
    key: str
    digest: bytes

    @property
    def redis_key(self) -> str:
        return keys.idempotency(self.scope, self.key)


def idempotency_arguments(key: IdempotencyKey | None) -> dict[str, Any]:
    """What a script takes, also where there is no key."""
    return {"idempotency_key": key and key.redis_key, "digest": key and key.digest}


class IdempotencyStore:
    """The first answer under each key. A key lives as long as its session, and at least a day."""

    def __init__(self, context: Context) -> None:
        self._redis = context.redis

    def recall(self, key: IdempotencyKey) -> bytes | None:
        """The first answer, or None when there is none yet. Raises KeyReusedError."""
        first_digest: bytes | None
        answer: bytes | None
        first_digest, answer = self._redis.hmget(key.redis_key, "digest", "answer")
        if first_digest is not None and first_digest != key.digest:
            raise KeyReusedError
        return answer

    def remember(self, key: IdempotencyKey, session_id: str | None, answer: bytes) -> bytes:
        """Keeps `answer` unless another was first; the first answer. What belongs to no session is kept for a day,
        or with the session that it made (see create_session.lua)."""
        with self._redis.pipeline() as pipeline:
            pipeline.hsetnx(key.redis_key, "digest", key.digest)
            pipeline.hsetnx(key.redis_key, "answer", answer)
            pipeline.hmget(key.redis_key, "digest", "answer")
            if session_id:
                pipeline.sadd(keys.session_idempotency(session_id), key.redis_key)
            replies = pipeline.execute()
        first_digest: bytes
        first: bytes
        first_digest, first = replies[2]
        if not session_id and not self._redis.hexists(key.redis_key, "id"):
            self._redis.expire(key.redis_key, int(DAY))
        if first_digest != key.digest:
            raise KeyReusedError
        return first
