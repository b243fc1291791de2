"""How much of a budget forward passes use."""

import threading


class Utilization:
    """The mean fraction of `budget` (sequences or tokens of a pass) that was used since it was last asked for.
    Thread-safe."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._used = self._passes = 0
        self._lock = threading.Lock()

    def add(self, used: int) -> None:
        """Counts a pass; `used` is above the budget where a single sequence is longer."""
        with self._lock:
            self._used += used
            self._passes += 1

    def take(self) -> float:
        """The mean since the last call; 0 when there was no pass."""
        with self._lock:
            used, passes = self._used, self._passes
            self._used = self._passes = 0
        return used / (passes * self._budget) if passes else 0.0
