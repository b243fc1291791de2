"""API keys: made, listed, revoked, and asked for with every request. Only digests are kept."""

import hashlib
import secrets
from collections.abc import Iterable

from domain.api_key import ANONYMOUS, ApiKey, KeyLimits
from store import keys
from store.context import Context
from store.errors import LimitReachedError, NotFoundError

# So that a key is known for one wherever it is found.
PREFIX = "celerity_"
RANDOM_BYTES = 32
ID_DIGITS = 16
FIELDS = ("name", "created_at", "revoked_at", *KeyLimits.__struct_fields__)


class ApiKeys:
    def __init__(self, context: Context) -> None:
        self._context = context

    def create(self, name: str, limits: KeyLimits) -> tuple[ApiKey, str]:
        """A new key's record, and the key itself, which nobody can tell again."""
        key = PREFIX + secrets.token_urlsafe(RANDOM_BYTES)
        digest, created_at = digest_of(key), self._context.now()
        key_id = digest[:ID_DIGITS]
        own = {field: value for field in limits.__struct_fields__ if (value := getattr(limits, field)) is not None}
        with self._context.redis.pipeline() as pipeline:
            record = {"digest": digest, "name": name, "created_at": created_at, **own}
            pipeline.hset(keys.api_key(key_id), mapping=record)
            pipeline.zadd(keys.API_KEYS, {key_id: created_at})
            pipeline.execute()
        return self.get(key_id), key

    def get(self, key_id: str) -> ApiKey:
        """A key by its id, revoked or not. Raises NotFoundError."""
        record = self._context.redis.hmget(keys.api_key(key_id), FIELDS)
        name, created_at, revoked_at, sessions, waiting, rate, body_bytes = record
        if name is None:
            raise NotFoundError(f"no such API key: {key_id}")
        return ApiKey(
            id=key_id,
            name=name.decode(),
            limits=KeyLimits(
                max_sessions=int(sessions) if sessions else None,
                max_waiting=int(waiting) if waiting else None,
                rate=float(rate) if rate else None,
                max_body_bytes=int(body_bytes) if body_bytes else None,
            ),
            created_at=float(created_at),
            revoked_at=float(revoked_at) if revoked_at else None,
        )

    def list(self) -> list[ApiKey]:
        """Every key that was made, the oldest first, revoked ones too."""
        return [self.get(key_id.decode()) for key_id in self._context.redis.zrange(keys.API_KEYS, 0, -1)]

    def is_any_made(self) -> bool:
        """Whether a key was ever made, so that a key is needed, also when all have been revoked."""
        return bool(self._context.redis.exists(keys.API_KEYS))

    def revoke(self, key_id: str) -> ApiKey:
        """Refuses the key from now on; revoking twice is revoking once. Raises NotFoundError."""
        self.get(key_id)
        self._context.redis.hsetnx(keys.api_key(key_id), "revoked_at", self._context.now())
        return self.get(key_id)

    def max_body_bytes(self, owner: str) -> int:
        """The most bytes of one body of an owner's; 0 where the server's limit alone counts."""
        own = self._context.redis.hget(keys.api_key(owner), "max_body_bytes")
        return self._context.settings.max_body_bytes_per_key if own is None else int(own)

    def admit(self, key: str, static: Iterable[str]) -> str | None:
        """The owner that a request with this key counts for, None when it needs a key that is good.

        The keys of `static` are good beside the stored ones; without any key, every caller is.
        Raises LimitReachedError when the owner has made as many requests as it may.
        """
        digest, good = digest_of(key), {digest_of(each) for each in static}
        return self._admit(digest[:ID_DIGITS], digest, good)

    def admit_owner(self, owner: str, static: Iterable[str]) -> str | None:
        """The same for one who has shown the key before: it is asked again whether it still is good."""
        good = {digest_of(each) for each in static}
        known = {digest[:ID_DIGITS]: digest for digest in good}
        stored = self._context.redis.hget(keys.api_key(owner), "digest")
        return self._admit(owner, known.get(owner) or (stored.decode() if stored else ""), good)

    def is_good(self, owner: str, static: Iterable[str]) -> bool:
        """Whether one who was admitted still would be; it takes nothing from what the owner may ask for."""
        known = {digest_of(each)[:ID_DIGITS] for each in static}
        if owner == ANONYMOUS:
            return not known and not self.is_any_made()
        return owner in known or not self._context.redis.hexists(keys.api_key(owner), "revoked_at")

    def _admit(self, key_id: str, digest: str, good: set[str]) -> str | None:
        verdict, *rest = self._context.scripts.run(
            "admit",
            id=key_id,
            digest=digest,
            is_static=digest in good,
            has_static=bool(good),
            default_rate=self._context.settings.max_rate_per_key,
        )
        if verdict == b"limited":
            rate = float(rest[0])
            raise LimitReachedError(f"more than {rate:g} requests a second, the most an API key may make", int(rest[1]))
        return None if verdict == b"unknown" else str(rest[0].decode())


def digest_of(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()
