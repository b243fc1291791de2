"""Alerts for the operator: what is wrong with the server, in sentences."""

from collections.abc import Iterator, Sequence

from app.console.formats import duration
from domain.session import Session, SessionStatus
from store.workers import Worker


def alerts(workers: Sequence[Worker], sessions: Sequence[Session], timeout: float) -> list[str]:
    """`timeout` is how long a heartbeat may be missed, in seconds."""
    return [*_of_workers(workers, timeout), *_of_sessions(sessions)]


def _of_workers(workers: Sequence[Worker], timeout: float) -> Iterator[str]:
    if not any(worker.heartbeat_age <= timeout for worker in workers):
        yield "No worker is alive: operations wait until one is started."
    for worker in workers:
        if worker.heartbeat_age > timeout:
            yield (
                f"Worker {worker.id} has not said for {duration(worker.heartbeat_age)} that it is alive; "
                f"its {worker.session_count} sessions move to another."
            )
        elif worker.room <= 0:
            yield f"Worker {worker.id} is full: it holds {worker.session_count} sessions and takes no new ones."


def _of_sessions(sessions: Sequence[Session]) -> Iterator[str]:
    for session in sessions:
        if session.status is SessionStatus.ERROR:
            yield f"Session {session.id} ended in an error: {session.reason or 'its worker does not say why'}"
