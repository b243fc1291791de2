"""One effect per Idempotency-Key: what a key was first used for, and the answer it got."""

import msgspec

from settings import DAY
from store import keys
from store.context import Context
from store.errors import KeyReusedError


class Once(msgspec.Struct, frozen=True):
    """A client's Idempotency-Key: where it counts (`scope`), and the digest of its body."""

    scope: str
    key: str
    digest: bytes

    @property
    def arguments(self) -> tuple[str, bytes]:
        """What the scripts take: the Redis key and the digest."""
        return keys.answer(self.scope, self.key), self.digest


def answer_arguments(once: Once | None) -> tuple[str, bytes | str]:
    """What a script takes, also where there is no key."""
    return once.arguments if once else ("", "")


class Answers:
    """First answers. A key lives as long as its session, and at least a day."""

    def __init__(self, context: Context) -> None:
        self._redis = context.redis

    def recall(self, once: Once) -> bytes | None:
        """The first answer, or None when there is none yet. Raises KeyReusedError."""
        key, digest = once.arguments
        first_digest: bytes | None
        answer: bytes | None
        first_digest, answer = self._redis.hmget(key, "digest", "answer")
        if first_digest is not None and first_digest != digest:
            raise KeyReusedError
        return answer

    def remember(self, once: Once, session_id: str | None, answer: bytes) -> bytes:
        """Keeps `answer` unless another was first; the first answer. What belongs to no session is kept for a day,
        or with the session that it made (see create_session.lua)."""
        key, digest = once.arguments
        with self._redis.pipeline() as pipeline:
            pipeline.hsetnx(key, "digest", digest)
            pipeline.hsetnx(key, "answer", answer)
            pipeline.hmget(key, "digest", "answer")
            if session_id:
                pipeline.sadd(keys.answers(session_id), key)
            replies = pipeline.execute()
        first_digest: bytes
        first: bytes
        first_digest, first = replies[2]
        if not session_id and not self._redis.hexists(key, "id"):
            self._redis.expire(key, int(DAY))
        if first_digest != digest:
            raise KeyReusedError
        return first
