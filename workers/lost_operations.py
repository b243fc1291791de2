"""Operations that the store has as running on this worker, and that do not run here.

That happens when Redis comes back from a crash without its last writes (its disk was slow or its power failed): the end
of an operation is undone, while its worker has gone on. The store is the truth, so the adapter in memory is given up:
the session is taken over by its own worker, in a new epoch.
"""

import logging
import threading
from collections import Counter

from store.store import Store

log = logging.getLogger(__name__)


class LostOperations:
    """Told which operations this worker runs, it finds those that only the store believes to run. Thread-safe, but for
    `sweep`."""

    def __init__(self, store: Store, worker_id: str) -> None:
        self._store, self._worker_id = store, worker_id
        self._lock = threading.Lock()
        # By how many messages: a duplicate comes and goes while the operation runs.
        self._running: Counter[str] = Counter()
        self._suspects: set[str] = set()

    @property
    def running(self) -> set[str]:
        """The operations that have begun and not ended."""
        with self._lock:
            return set(self._running)

    def began(self, operation_id: str) -> None:
        """Called before an operation is claimed."""
        with self._lock:
            self._running[operation_id] += 1

    def ended(self, operation_id: str) -> None:
        """Called when its end is in the store, or when the claim was refused."""
        with self._lock:
            self._running[operation_id] -= 1
            if not self._running[operation_id]:
                del self._running[operation_id]

    def sweep(self) -> None:
        """Takes over the sessions of operations that two sweeps in a row did not find running here: one that has just
        ended may be missing once."""
        running = self._store.claims.running(self._worker_id)
        missing = set(running) - self.running
        for operation_id in missing & self._suspects:
            session_id = running[operation_id]
            log.warning("operation %s of session %s is not running here: starting it again", operation_id, session_id)
            self._store.sessions.move(session_id, self._worker_id, self._worker_id)
        self._suspects = missing - self._suspects
