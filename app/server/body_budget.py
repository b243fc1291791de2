"""How many bytes of large bodies a process holds at once, and how they are shared."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

SHARE_OF_OTHERS = 4
"""One part in so many of the budget is reserved for owners with no body in flight: else one client that sends slowly
keeps all others from sending anything large."""


class BodyBudget:
    def __init__(self, most: int) -> None:
        self._most = most
        self._taken: Counter[str] = Counter()
        self._lock = Lock()

    @contextmanager
    def reserve(self) -> Iterator["Reservation"]:
        """A reservation, with nothing in it yet, that is given back in the end."""
        reservation = Reservation(self)
        try:
            yield reservation
        finally:
            self._give_back(reservation)

    def grow(self, reservation: "Reservation", size: int) -> bool:
        """Whether a reservation has `size` bytes now; if there is no room, it stays as it is."""
        with self._lock:
            more = size - reservation.size
            if more <= 0:
                return True
            has_another = self._taken[reservation.owner] > reservation.size
            room = self._most - self._most // SHARE_OF_OTHERS if has_another else self._most
            if self._taken.total() + more > room:
                return False
            self._taken[reservation.owner] += more
            reservation.size = size
            return True

    def _give_back(self, reservation: "Reservation") -> None:
        with self._lock:
            self._taken[reservation.owner] -= reservation.size
            if not self._taken[reservation.owner]:
                del self._taken[reservation.owner]


class Reservation:
    """What one body has of the budget. `most` is the most that it may ask for, and `owner` who sends it: whoever admits
    it sets both, before it asks for any."""

    def __init__(self, budget: BodyBudget) -> None:
        self._budget = budget
        self.size = 0
        self.most = 0
        self.owner = ""

    def grow(self, size: int) -> bool:
        return self._budget.grow(self, size)
