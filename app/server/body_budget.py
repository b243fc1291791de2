"""How many bytes of large bodies a process holds at once."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock


class BodyBudget:
    def __init__(self, most: int) -> None:
        self._most = most
        self._taken = 0
        self._lock = Lock()

    @contextmanager
    def reserve(self) -> Iterator["Reservation"]:
        """A reservation, with nothing in it yet, that is given back in the end."""
        reservation = Reservation(self)
        try:
            yield reservation
        finally:
            self._move(-reservation.size)

    def grow(self, reservation: "Reservation", size: int) -> bool:
        """Whether a reservation has `size` bytes now; if there is no room, it stays as it is."""
        if size <= reservation.size:
            return True
        if not self._move(size - reservation.size):
            return False
        reservation.size = size
        return True

    def _move(self, count: int) -> bool:
        with self._lock:
            if self._taken + count > self._most:
                return False
            self._taken += count
            return True


class Reservation:
    """What one body has of the budget. `most` is the most that it may ask for, which whoever admits it sets."""

    def __init__(self, budget: BodyBudget) -> None:
        self._budget = budget
        self.size = 0
        self.most = 0

    def grow(self, size: int) -> bool:
        return self._budget.grow(self, size)
