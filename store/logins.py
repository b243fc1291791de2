"""Logins to the console. Each is a random token that its browser has; here is only the token's digest."""

import secrets

from store import keys
from store.api_keys import digest_of
from store.context import Context

RANDOM_BYTES = 32


class Logins:
    def __init__(self, context: Context) -> None:
        self._redis = context.redis

    def begin(self, owner: str, seconds: int) -> str:
        """The token of a new login, which ends by itself after so long."""
        token = secrets.token_urlsafe(RANDOM_BYTES)
        self._redis.set(keys.login(digest_of(token)), owner, ex=seconds)
        return token

    def owner(self, token: str) -> str | None:
        """None when there is no such login, or it has ended."""
        owner: bytes | None = self._redis.get(keys.login(digest_of(token)))
        return owner.decode() if owner else None

    def end(self, token: str) -> None:
        """Ending it twice is ending it once."""
        self._redis.delete(keys.login(digest_of(token)))
