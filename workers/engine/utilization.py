"""How full passes are."""

import threading


class Fill:
    """The mean part of a budget that passes used, since it was last asked for. Any thread may ask."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._used = self._passes = 0
        self._lock = threading.Lock()

    def add(self, used: int) -> None:
        """A pass, by how much of the budget it used: more than all of it, where one sequence alone is longer."""
        with self._lock:
            self._used += used
            self._passes += 1

    def take(self) -> float:
        """0 when there was no pass."""
        with self._lock:
            used, passes = self._used, self._passes
            self._used = self._passes = 0
        return used / (passes * self._budget) if passes else 0.0
