"""What the API signs links with: one secret for all its processes, which share Redis and may share no disk."""

import secrets

from store import keys
from store.context import Context

RANDOM_BYTES = 32


class SigningSecret:
    def __init__(self, context: Context) -> None:
        self._redis = context.redis

    def read(self) -> str:
        """Drawn once, by whoever is first."""
        secret = self._redis.get(keys.SIGNING_SECRET)
        if secret is None:
            self._redis.set(keys.SIGNING_SECRET, secrets.token_urlsafe(RANDOM_BYTES), nx=True)
            secret = self._redis.get(keys.SIGNING_SECRET)
        return str(secret.decode())
