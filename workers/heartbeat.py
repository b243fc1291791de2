"""The worker's own clock: says that it is alive, and sees to what is overdue."""

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

from store.errors import Unavailable
from store.refusals import sentence
from workers.background import in_background
from workers.runtime import Runtime

log = logging.getLogger(__name__)

SWEEP_SECONDS = 30.0
LOOK_SECONDS = 3.0


class Heartbeat:
    def __init__(self, runtime: Runtime, before: Callable[[threading.Event], None] = lambda _: None) -> None:
        """`before` is called once, ahead of the first beat; what it is given is set when this is to stop."""
        self._runtime = runtime
        self._before = before
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self._connected_since: float | None = None
        self._last_sweep = self._last_look = time.monotonic()
        self._sweep: Future[None] | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._before(self._stopped)
            while not self._stopped.is_set():
                self._beat_if_connected()
                self._stopped.wait(self._runtime.settings.heartbeat_interval)
        finally:
            if not self._stopped.is_set():
                # A fault of ours: a worker that cannot say that it is alive must not seem to be.
                os.kill(os.getpid(), signal.SIGTERM)

    def _beat_if_connected(self) -> None:
        try:
            self._beat()
        except Unavailable as error:
            self._connected_since = None
            log.warning("no heartbeat: %s (%s)", sentence(error), error)

    def _beat(self) -> None:
        store, worker_id = self._runtime.store, self._runtime.worker_id
        store.workers.beat(worker_id, self._runtime.announcement())
        self._runtime.residency.release_others(lambda: store.workers.sessions(worker_id))
        store.claims.publish_overdue(worker_id)
        store.janitor.move_sessions_of(store.workers.left())
        if self._has_been_connected():
            store.janitor.move_sessions_of(store.workers.lost())
        if time.monotonic() - self._last_look >= LOOK_SECONDS:
            self._runtime.lost_operations.sweep()
            self._last_look = time.monotonic()
        if time.monotonic() - self._last_sweep >= SWEEP_SECONDS:
            self._begin_sweep()
            self._last_sweep = time.monotonic()

    def _begin_sweep(self) -> None:
        """In the background: object storage that is away would hold up the heartbeat for longer than it may be missed.
        What the last sweep raised is raised here."""
        if self._sweep is None or self._sweep.done():
            last, self._sweep = self._sweep, None
            if last:
                last.result()
            self._sweep = in_background(self._swept)

    def _swept(self) -> None:
        try:
            self._runtime.store.janitor.sweep()
        except Unavailable as error:
            log.warning("not swept: %s (%s)", sentence(error), error)

    def _has_been_connected(self) -> bool:
        """Whether this worker has beaten without a gap for a whole timeout. Only then may it say that others
        are lost: after an outage every heartbeat looks old."""
        if self._connected_since is None:
            self._connected_since = time.monotonic()
        return time.monotonic() - self._connected_since > self._runtime.settings.heartbeat_timeout
