"""Faults injected at random from a seed, counted by kind."""

import random
import threading
import time
from collections import Counter
from collections.abc import Iterable

import redis

from domain.api_key import ANONYMOUS
from store import keys
from tests.chaos.deployment import Deployment
from tests.chaos.faults.table import WEIGHTS, Fault, draw, impossible
from tests.chaos.stuck_sessions import stuck_sessions

PAUSE_SECONDS = (0.2, 2.0)
# How long the release of operations may take to lead to one that has not ended: an API is started again meanwhile.
BUSY_SECONDS = 10.0
POLL_SECONDS = 0.005
# So many faults in a row hit what may not have recovered from the one before. Then everything has to.
FAULTS_IN_A_ROW = 10
MOST_PAUSE_SECONDS = 120.0


class Injector:
    """Injects `total` faults, each when some accepted operation has not ended, with a pause now and then, in which
    stuck sessions are found. In the caller's thread, since a process that it starts ends with the thread
    that started it."""

    def __init__(self, deployment: Deployment, seed: int, total: int, kinds: Iterable[Fault] = WEIGHTS) -> None:
        self.counts: Counter[str] = Counter()
        self.idle = 0
        self.stuck: set[str] = set()
        self._deployment = deployment
        self._rng = random.Random(seed)
        lacking = impossible(deployment)
        self.not_tried = sorted(fault.__name__ for fault in lacking)
        weights = {fault: WEIGHTS[fault] for fault in kinds if fault not in lacking}
        self._faults = draw(weights, self._rng, total)
        self._progress = threading.Condition()
        self._released = 0

    def wait_for(self, number: int) -> None:
        """Blocks until the fault of this number, from 0, is the next."""
        with self._progress:
            self._progress.wait_for(lambda: self._released > min(number, len(self._faults) - 1))

    def inject_all(self) -> None:
        for number, fault in enumerate(self._faults, start=1):
            time.sleep(self._rng.uniform(*PAUSE_SECONDS))
            with self._progress:
                self._released += 1
                self._progress.notify_all()
            if self._is_busy():
                self.counts[fault.__name__] += 1
            else:
                self.idle += 1
            fault(self._deployment, self._rng)
            if number % FAULTS_IN_A_ROW == 0 or number == len(self._faults):
                self.stuck |= stuck_sessions(self._deployment, MOST_PAUSE_SECONDS)
            self._deployment.check()

    def _is_busy(self) -> bool:
        """Waits for an operation that has not ended."""
        deadline = time.monotonic() + BUSY_SECONDS
        while time.monotonic() < deadline:
            with self._deployment.servers.primary.admin() as admin:
                try:
                    if admin.scard(keys.owner_waiting(ANONYMOUS)):
                        return True
                except redis.ConnectionError:  # it is being started again
                    pass
            time.sleep(POLL_SECONDS)
        return False
