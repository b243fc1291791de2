"""Request bodies and results, stored once: small ones in Redis, large ones as objects.

The stored form is a byte that says which, then the payload or the object's path.
"""

from store.objects import Objects
from store.writes import Writes

INLINE = b"="
OBJECT = b">"


class Payloads:
    """`inline_bytes` is the largest payload that stays in Redis.

    Each method raises ObjectsAwayError when there is an object, and its storage is away.
    """

    def __init__(self, objects: Objects, writes: Writes, inline_bytes: int) -> None:
        self._objects = objects
        self._writes = writes
        self._inline_bytes = inline_bytes

    def put(self, path: str, data: bytes, floor: int = 0) -> bytes:
        """The stored form of `data`, which is kept under `path` if it is large, and for a day unless a record comes to
        hold that form. Raises DiskLowError when a large one would leave less than `floor` bytes of the disk free."""
        if len(data) <= self._inline_bytes:
            return INLINE + data
        self._writes.put(path, data, floor)
        return OBJECT + path.encode()

    def get(self, stored: bytes) -> bytes:
        """The payload behind its stored form, which a record holds. Raises ObjectMissingError."""
        if stored.startswith(INLINE):
            return stored[1:]
        return self._objects.get_kept(stored[1:].decode())

    def is_inline(self, stored: bytes) -> bool:
        """Whether the payload is in Redis itself."""
        return stored.startswith(INLINE)

    def discard(self, stored: bytes) -> None:
        """Forgets a payload that no record came to refer to."""
        if stored.startswith(OBJECT):
            self._writes.discard(stored[1:].decode())
