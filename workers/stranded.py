"""Operations that the store believes to be running here, and are not.

That happens when Redis came back from a crash with less than it had told (its disk was slow or its power failed): the
end of an operation is undone, while its worker has gone on. The store is the truth, so what is in memory is given up:
the session is taken over by its own worker, in a new epoch.
"""

import logging
import threading
from collections import Counter

from store.store import Store

log = logging.getLogger(__name__)


class Stranded:
    def __init__(self, store: Store, worker_id: str) -> None:
        self._store, self._worker_id = store, worker_id
        self._lock = threading.Lock()
        self._here: Counter[str] = Counter()
        self._suspects: set[str] = set()

    @property
    def here(self) -> set[str]:
        """The operations that have entered and not left."""
        with self._lock:
            return set(self._here)

    def enter(self, operation_id: str) -> None:
        """Called before an operation is claimed."""
        with self._lock:
            self._here[operation_id] += 1

    def leave(self, operation_id: str) -> None:
        """Called when its end is in the store, or somebody else's. A duplicate of its message enters and leaves too,
        while it goes on."""
        with self._lock:
            self._here[operation_id] -= 1
            if not self._here[operation_id]:
                del self._here[operation_id]

    def sweep(self) -> None:
        """Takes over the sessions of operations that were not here twice in a row: one that has just ended may
        seem so once."""
        running = self._store.claims.running(self._worker_id)
        missing = set(running) - self.here
        for operation_id in missing & self._suspects:
            session_id = running[operation_id]
            log.warning("operation %s of session %s is not running here: starting it again", operation_id, session_id)
            self._store.sessions.move(session_id, self._worker_id, self._worker_id)
        self._suspects = missing - self._suspects
