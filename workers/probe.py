"""A start-up self-test: a no-op task through broker, worker and backend; the worker is announced once it succeeded."""

import logging
import os
import threading
import time
from uuid import uuid4

from store.errors import Unavailable
from store.refusals import sentence
from store.store import Store

log = logging.getLogger(__name__)

POLL_SECONDS = 0.02
RETRY_SECONDS = 5.0
LONGEST_SECONDS = 60.0


class Probe:
    """The task goes through the broker to this worker, runs the script that begins an operation, and ends in the result
    backend. Its id is no operation's."""

    def __init__(self, store: Store, worker_id: str) -> None:
        self.id = f"probe-{uuid4()}"
        self._store, self._worker_id = store, worker_id
        self._returned = threading.Event()

    def run(self) -> None:
        """What the task does."""
        self._store.claims.claim(self.id, self._worker_id, self.id)

    def end(self) -> None:
        """The result backend has the task's result."""
        self._returned.set()

    def wait(self, stopped: threading.Event) -> None:
        """Returns when the task has come back, or when `stopped` is set. A worker to which it does not come for long,
        although Redis is there, would fail whatever it is given: the process ends."""
        give_up_at, next_try = time.monotonic() + LONGEST_SECONDS, 0.0
        while not self._returned.is_set() and not stopped.wait(POLL_SECONDS):
            now = time.monotonic()
            if now >= give_up_at:
                log.critical("no task came back within %.0f s: the log above says what failed", LONGEST_SECONDS)
                os._exit(1)
            if now >= next_try:
                next_try = now + RETRY_SECONDS
                if not self._try():
                    give_up_at = now + LONGEST_SECONDS

    def _try(self) -> bool:
        """Sends the task; False when Redis is away or takes no message."""
        try:
            self._store.check_writable()
        except Unavailable as error:
            log.warning("not announced yet: %s (%s)", sentence(error), error)
            return False
        self._store.workers.send_probe(self._worker_id, self.id)
        return True
