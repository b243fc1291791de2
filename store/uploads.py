"""Bodies that a client sends ahead of its request, and results that it fetches apart: objects for a day."""

import re
from uuid import uuid4

from store.errors import NotFoundError
from store.objects import Objects
from store.writes import Writes

PAYLOAD_ID = re.compile(r"[A-Za-z0-9-]{1,64}")


class Uploads:
    """An object belongs to a session, whose owner alone is told where it lies."""

    def __init__(self, objects: Objects, writes: Writes, disk_floor: int) -> None:
        self._objects = objects
        self._writes = writes
        self._disk_floor = disk_floor

    def begin(self, session_id: str) -> tuple[str, str]:
        """A new payload's id, and the path that it is to be put at."""
        payload_id = str(uuid4())
        return payload_id, self.path(session_id, payload_id)

    def path(self, session_id: str, payload_id: str) -> str:
        """Raises NotFoundError for what cannot be a payload's id."""
        if not PAYLOAD_ID.fullmatch(payload_id):
            raise NotFoundError("no such payload in this training session")
        return f"payloads/{session_id}/{payload_id}"

    def take(self, path: str, data: bytes) -> None:
        """What a client sends, for a day. Raises DiskLowError."""
        self._writes.put(path, data, self._disk_floor)

    def put(self, path: str, data: bytes) -> None:
        """What a client is to fetch, for a day."""
        self._writes.put(path, data)

    def get(self, session_id: str, payload_id: str) -> bytes:
        """Raises NotFoundError when it was never put, or is older than a day."""
        try:
            return self._objects.get(self.path(session_id, payload_id))
        except FileNotFoundError as error:
            raise NotFoundError("no such payload in this training session") from error

    def size(self, session_id: str, payload_id: str) -> int:
        """In bytes. Raises NotFoundError as `get` does."""
        try:
            return self._objects.size(self.path(session_id, payload_id))
        except FileNotFoundError as error:
            raise NotFoundError("no such payload in this training session") from error
