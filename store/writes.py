"""Objects on their way: each is noted before it is written, until a record refers to it.

So what the end of a process leaves, half or whole, is deleted all the same, a day later.
"""

from settings import DAY
from store import keys
from store.connection import RawRedis
from store.errors import DiskLowError, ObjectsAwayError
from store.objects import Objects


class Writes:
    def __init__(self, redis: RawRedis, objects: Objects) -> None:
        self._redis = redis
        self._objects = objects

    def put(self, path: str, data: bytes, floor: int = 0) -> None:
        """Writes an object that lives for a day, unless a script makes a record that refers to it.

        Raises ObjectsAwayError; DiskLowError when it would leave less than `floor` bytes of a disk of this host free.
        """
        free = self._objects.free_bytes() if floor else None
        if free is not None and free - len(data) < floor:
            raise DiskLowError(free, floor)
        self._redis.zadd(keys.UNREFERENCED, {path: self._redis.time()[0]})
        self._objects.put(path, data)

    def discard(self, path: str) -> None:
        """Deletes an object that no record came to refer to. While the storage is away, that is left to `sweep`."""
        try:
            self._objects.delete(path)
        except ObjectsAwayError:
            return
        self._redis.zrem(keys.UNREFERENCED, path)

    def sweep(self) -> None:
        for path in self._redis.zrangebyscore(keys.UNREFERENCED, "-inf", self._redis.time()[0] - DAY):
            self._redis.sadd(keys.GARBAGE, path)
            self._redis.zrem(keys.UNREFERENCED, path)
