"""The room for large bodies: how many bytes of them a process holds at once."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock


class Room:
    def __init__(self, most: int) -> None:
        self._most = most
        self._taken = 0
        self._lock = Lock()

    @contextmanager
    def place(self) -> Iterator["Place"]:
        """A place, with nothing in it yet, that is given back in the end."""
        place = Place(self)
        try:
            yield place
        finally:
            self._move(-place.size)

    def grow(self, place: "Place", size: int) -> bool:
        """Whether a place has `size` bytes now; if there is no room, it stays as it is."""
        if size <= place.size:
            return True
        if not self._move(size - place.size):
            return False
        place.size = size
        return True

    def _move(self, count: int) -> bool:
        with self._lock:
            if self._taken + count > self._most:
                return False
            self._taken += count
            return True


class Place:
    """What one body has of the room. `most` is the most that it may ask for, which whoever admits it sets."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self.size = 0
        self.most = 0

    def grow(self, size: int) -> bool:
        return self._room.grow(self, size)
