"""The Celery app: `celery -A workers.celery_app worker` makes a process a worker.

Each worker has a queue of its own, named by its id, and the threads pool: its tasks only wait for
the engine, and a process that owns a GPU must not fork.
"""

import logging
import threading
from typing import Any

from celery import Celery, signals
from kombu import Queue

from logs import configure_logging
from settings import load_settings
from store.broker import broker_settings
from store.private_files import close_for
from tracing import start_tracing
from workers.backend import OperationBackend
from workers.consumer import RetryingConsumer
from workers.heartbeat import Heartbeat
from workers.process import current, open_runtime

log = logging.getLogger(__name__)

# Tasks that wait for the engine at once; the store bounds how many there are.
THREADS = 512

try:
    settings = load_settings()
except ValueError as error:
    # Celery would show where in its code it was.
    raise SystemExit(f"celerity: {error}") from error

app = Celery("celerity", include=["workers.tasks"])
app.conf.update(
    result_backend=f"{OperationBackend.__module__}.{OperationBackend.__name__}",
    # One for all threads, as the store is.
    result_backend_thread_safe=True,
    worker_pool="threads",
    worker_consumer=f"{RetryingConsumer.__module__}:{RetryingConsumer.__name__}",
    worker_concurrency=THREADS,
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    # A connection that is open but carries nothing any more is given up after one to two health checks, which wait
    # for their turn behind other commands: so those must not wait long.
    **broker_settings(
        settings.redis,
        socket_timeout=settings.broker_check_interval / 2,
        socket_keepalive=True,
        health_check_interval=settings.broker_check_interval,
    ),
)

heartbeat: Heartbeat | None = None


def use_our_logging(**_: Any) -> None:
    configure_logging(settings.log_level, form=settings.log_format)


def become_worker(instance: Any, conf: Any, **_: Any) -> None:
    """Before Celery reads its queues: give this process its identity and its queue."""
    configure_logging(settings.log_level, form=settings.log_format)
    close_for(settings)
    if settings.traces:
        start_tracing("celerity-worker")
    try:
        runtime = open_runtime(settings)
    except ValueError as error:
        # Celery would log any exception and go on as a worker that runs nothing.
        raise SystemExit(f"celerity: {error}") from error
    except Exception as error:
        log.exception("this process cannot become a worker")
        raise SystemExit("celerity: a fault of ours keeps this process from becoming a worker") from error
    instance.hostname = runtime.worker_id
    conf.task_default_queue = runtime.worker_id
    # A message that is lost is sent again by the sweeper, so the broker need not keep account of those under way.
    conf.task_queues = [Queue(runtime.worker_id, no_ack=True)]


def announce(**_: Any) -> None:
    global heartbeat
    heartbeat = Heartbeat(current(), before=current().probe.wait)
    heartbeat.start()


def drain(**_: Any) -> None:
    """In a thread of its own: this is called by a signal handler, which may have interrupted anything."""

    def go() -> None:
        if heartbeat:
            heartbeat.stop()
            current().drain()

    threading.Thread(target=go, name="drain", daemon=True).start()


def leave(**_: Any) -> None:
    if heartbeat:
        heartbeat.stop()
        current().close()


signals.setup_logging.connect(use_our_logging)
signals.celeryd_init.connect(become_worker)
signals.worker_ready.connect(announce)
signals.worker_shutting_down.connect(drain)
signals.worker_shutdown.connect(leave)
