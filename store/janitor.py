"""Periodic cleanup: sessions of lost workers move, idle ones stop, old results, sessions and checkpoints go."""

import logging
from collections.abc import Iterable
from typing import Protocol

from domain.session import Session, SessionStatus
from settings import DAY
from store import keys
from store.context import Context
from store.errors import ObjectsAwayError
from store.objects import Objects
from store.sessions import Sessions
from store.workers import Workers

log = logging.getLogger(__name__)

# Storage that is away may take seconds to say so.
MOST_FAILURES = 10
IDLE = "stopped because it was idle for longer than the server allows"


class Swept(Protocol):
    def sweep(self) -> None: ...


class Janitor:
    """Any worker may sweep at any time: each change is one atomic script that checks for itself."""

    def __init__(
        self, context: Context, sessions: Sessions, workers: Workers, swept: Iterable[Swept], objects: Objects
    ) -> None:
        """`swept` are the parts of the store that do some of this themselves."""
        self._redis = context.redis
        self._context = context
        self._settings = context.settings
        self._sessions = sessions
        self._workers = workers
        self._swept = tuple(swept)
        self._objects = objects

    def sweep(self) -> None:
        self.stop_idle_sessions()
        self.expire_results()
        self.remove_old_sessions()
        for part in self._swept:
            part.sweep()
        self.delete_garbage()

    def move_sessions_of(self, lost: list[str]) -> None:
        """Gives what these workers held to live ones; the workers are forgotten once they hold nothing."""
        for worker_id in lost:
            for session in self._sessions.find(self._workers.sessions(worker_id)):
                if session:
                    self._move(session, worker_id)
            self._workers.forget(worker_id)

    def _move(self, session: Session, lost: str) -> None:
        """To a worker that may be full: what was accepted is never refused."""
        for new in self._workers.candidates(session.spec)[:1]:
            if self._sessions.move(session.id, lost, new):
                log.warning("session %s moved from worker %s, which is gone, to %s", session.id, lost, new)

    def stop_idle_sessions(self) -> None:
        if not self._settings.idle_timeout:
            return
        since = self._context.now() - self._settings.idle_timeout
        for session in self._sessions.find(self._sessions.running()):
            if session and session.status is SessionStatus.RUNNING and session.updated_at <= since:
                self._sessions.stop(session.id, IDLE, since)

    def expire_results(self) -> None:
        """Of sessions that go on: the operations go whole, so that a session may go on for ever."""
        before = self._context.now() - self._settings.result_retention
        for session_id in self._sessions.running():
            while self._context.scripts.run(
                "expire_results", session=session_id, kept=self._settings.results_kept, before=before
            ):
                pass

    def remove_old_sessions(self) -> None:
        for session_id in self._sessions.ended_before(self._context.now() - self._settings.session_retention):
            self._sessions.remove(session_id, idempotency_seconds=DAY)

    def delete_garbage(self) -> None:
        """What cannot be deleted stays in the set, for the next sweep."""
        failures = 0
        for path in self._redis.srandmember(keys.GARBAGE, 1000):
            try:
                self._objects.delete(path.decode())
            except ObjectsAwayError as error:
                log.warning("the object %s could not be deleted: %s", path.decode(), error)
                failures += 1
            else:
                self._redis.srem(keys.GARBAGE, path)
            if failures == MOST_FAILURES:
                return
