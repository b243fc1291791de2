"""Snapshots for recovery: adapters copied between two operations and written in the background."""

import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from domain.operation import OperationFailedError
from settings import Settings
from store.claims import Claim
from store.store import Store
from workers.engine.adapters.state import AdapterState
from workers.engine.engine import Engine
from workers.retry import until_available

log = logging.getLogger(__name__)


class SnapshotWriter:
    """A session's snapshot is due after `snapshot_steps` steps, or `snapshot_seconds` after the last one."""

    def __init__(self, store: Store, engine: Engine, settings: Settings) -> None:
        self._store, self._engine, self._settings = store, engine, settings
        self._taken: dict[str, tuple[int, float]] = {}
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="snapshots")

    def after_step(self, claim: Claim, step: int) -> Callable[[], None] | None:
        """Called before a finished step lets the next operation run: copies the adapter if a snapshot is due.

        What it returns is to be called once the step has ended, and returns at once.
        """
        if not self._is_due(claim.session_id, step):
            return None
        self._taken[claim.session_id] = step, time.monotonic()
        try:
            state = self._engine.copy_adapter(claim.session_id).result()
        except OperationFailedError as failed:
            # A completed step must not fail because there is no memory for a copy of the adapter.
            log.warning("no snapshot of session %s: %s", claim.session_id, failed)
            return None
        return lambda: self._submit(claim, state)

    def close(self) -> None:
        """Waits for the snapshots that have been copied."""
        self._pool.shutdown()

    def _is_due(self, session_id: str, step: int) -> bool:
        last_step, last_time = self._taken.setdefault(session_id, (step - 1, time.monotonic()))
        # A step before the last one taken: the session has been elsewhere, or began again.
        return (
            step <= last_step
            or step - last_step >= self._settings.snapshot_steps
            or time.monotonic() - last_time >= self._settings.snapshot_seconds
        )

    def _submit(self, claim: Claim, state: AdapterState) -> None:
        def write() -> None:
            data = state.to_bytes()
            until_available(lambda: self._store.snapshots.save(claim, data), "writing a snapshot")

        self._pool.submit(write).add_done_callback(_log_failure)


def _log_failure(written: Future[None]) -> None:
    """What the last snapshot does not cover stays to be replayed until a later one does."""
    if error := written.exception():
        log.error("a snapshot could not be written", exc_info=error)
