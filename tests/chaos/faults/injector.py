"""Faults injected at random from a seed, counted by kind."""

import random
import threading
import time
from collections import Counter

from stack.stack import Stack
from tests.chaos.faults.processes import freeze_valkey
from tests.chaos.faults.table import WEIGHTS

PAUSE_SECONDS = (0.5, 2.5)


class Injector:
    """Injects `total` faults, a random pause apart. In the caller's thread, since a process that it starts ends with
    the thread that started it."""

    def __init__(self, stack: Stack, seed: int, total: int, *, freeze: bool) -> None:
        """With `freeze`, the middle one holds the server still for half a minute."""
        self.counts: Counter[str] = Counter()
        self._stack, self._total, self._freeze = stack, total, freeze
        self._rng = random.Random(seed)
        self._progress = threading.Condition()

    def wait_for(self, count: int) -> None:
        """Blocks until so many faults have been injected, or all."""
        with self._progress:
            self._progress.wait_for(lambda: self.counts.total() >= min(count, self._total))

    def inject_all(self) -> None:
        for number in range(self._total):
            time.sleep(self._rng.uniform(*PAUSE_SECONDS))
            (fault,) = self._rng.choices(list(WEIGHTS), list(WEIGHTS.values()))
            if self._freeze and number == self._total // 2:
                fault = freeze_valkey
            fault(self._stack, self._rng)
            with self._progress:
                self.counts[fault.__name__] += 1
                self._progress.notify_all()
