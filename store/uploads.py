"""Bodies that a client sends ahead of its request, and results that it fetches apart: objects for a day."""

import re
from uuid import uuid4

from settings import DAY
from store import keys
from store.context import Context
from store.errors import NotFoundError
from store.objects import Objects

PAYLOAD_ID = re.compile(r"[A-Za-z0-9-]{1,64}")


class Uploads:
    """An object belongs to a session, whose owner alone is told where it lies."""

    def __init__(self, context: Context, objects: Objects) -> None:
        self._context = context
        self._objects = objects

    def begin(self, session_id: str) -> tuple[str, str]:
        """A new payload's id, and the path that it is to be put at."""
        payload_id = str(uuid4())
        return payload_id, self.path(session_id, payload_id)

    def path(self, session_id: str, payload_id: str) -> str:
        """Raises NotFoundError for what cannot be a payload's id."""
        if not PAYLOAD_ID.fullmatch(payload_id):
            raise NotFoundError("no such payload in this training session")
        return f"payloads/{session_id}/{payload_id}"

    def put(self, path: str, data: bytes) -> None:
        """Noted before it is written, so that it is deleted whatever happens."""
        self._context.redis.zadd(keys.UPLOADS, {path: self._context.now()})
        self._objects.put(path, data)

    def get(self, session_id: str, payload_id: str) -> bytes:
        """Raises NotFoundError when it was never put, or is older than a day."""
        try:
            return self._objects.get(self.path(session_id, payload_id))
        except FileNotFoundError as error:
            raise NotFoundError("no such payload in this training session") from error

    def sweep(self) -> None:
        for path in self._context.redis.zrangebyscore(keys.UPLOADS, "-inf", self._context.now() - DAY):
            self._objects.delete(path.decode())
            self._context.redis.zrem(keys.UPLOADS, path)
