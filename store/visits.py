"""Visits of the console: one is good until it ends, or its time is over."""

import secrets

from store import keys
from store.context import Context

RANDOM_BYTES = 16


class Visits:
    def __init__(self, context: Context) -> None:
        self._redis = context.redis

    def begin(self, owner: str, seconds: int) -> str:
        """A new visit's id."""
        visit_id = secrets.token_urlsafe(RANDOM_BYTES)
        self._redis.set(keys.visit(visit_id), owner, ex=seconds)
        return visit_id

    def is_open(self, visit_id: str) -> bool:
        return bool(self._redis.exists(keys.visit(visit_id)))

    def end(self, visit_id: str) -> None:
        """Ending it twice is ending it once."""
        self._redis.delete(keys.visit(visit_id))
