"""Telling a worker that an operation may run: one Celery message that carries the operation's id."""

import logging
from typing import NamedTuple

from celery import Celery
from kombu.exceptions import OperationalError

from domain.operation import OperationKind
from domain.redis_url import RedisUrl
from store.broker import broker_settings
from store.errors import Unavailable
from tracing import within

log = logging.getLogger(__name__)

# The task of no operation.
PROBE = "probe"


class Released(NamedTuple):
    """An operation whose turn has come, the worker that holds its session, and where its trace stands."""

    operation_id: str
    kind: OperationKind
    worker_id: str
    trace: str


class Dispatcher:
    """Publishes to the workers' queues; a queue is named after its worker.

    A message only wakes a worker: if the broker is away or refuses it, the operation stays READY in the store and the
    sweeper publishes it again, so a failure here is logged and never raised. Nor is it waited for once for each.
    """

    def __init__(self, celery: Celery) -> None:
        self._celery = celery

    def publish(self, released: list[Released]) -> None:
        for place, operation in enumerate(released):
            try:
                self._send(operation)
            except (OperationalError, *Unavailable) as error:
                waiting = ", ".join(each.operation_id for each in released[place:])
                log.warning("left to the sweeper: operation %s (%s)", waiting, error)
                return

    def _send(self, operation: Released) -> None:
        """In the trace of its own request, whoever sends it: the end of another operation may have released it."""
        name, queue = operation.kind.task_name, operation.worker_id
        with within(operation.trace):
            self._celery.send_task(name, task_id=operation.operation_id, queue=queue, retry=False)

    def send_probe(self, worker_id: str, probe_id: str) -> None:
        """What becomes of it, the worker finds out."""
        try:
            self._celery.send_task(PROBE, task_id=probe_id, queue=worker_id, retry=False)
        except (OperationalError, *Unavailable) as error:
            log.warning("the probe of worker %s was not sent: %s", worker_id, error)

    def check(self) -> None:
        """Raises OperationalError or one of Unavailable when the broker cannot be reached."""
        with self._celery.connection_for_write() as connection:
            connection.ensure_connection(max_retries=1, interval_start=0, interval_step=0)

    def forget(self, worker_id: str) -> None:
        """Deletes the queue of a worker that is gone; a leftover queue is harmless, nobody reads it."""
        try:
            self._delete(worker_id)
        except (OperationalError, *Unavailable) as error:
            log.warning("the queue of worker %s stays: %s", worker_id, error)

    def _delete(self, worker_id: str) -> None:
        with self._celery.connection_for_write() as connection, connection.channel() as channel:
            channel.queue_delete(worker_id)


def producer(url: RedisUrl) -> Celery:
    """A Celery app that only sends: it has no tasks and no result backend."""
    celery = Celery("celerity", set_as_current=False)
    # A request waits for this: what cannot be sent at once is left to the sweeper.
    once = {"max_retries": 1, "interval_start": 0, "interval_step": 0}
    celery.conf.update(broker_settings(url, socket_timeout=5, **once))
    return celery
