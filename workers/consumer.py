"""Celery's consumer, which connects once Redis takes writes."""

from typing import Any

from celery.worker.consumer import Consumer
from celery.worker.state import maybe_shutdown

from workers.process import current
from workers.retry import until_available


class RetryingConsumer(Consumer):
    """Celery's own would connect to a server that refuses to work, find out with its first command and begin anew, some
    six times a second; and of one that is away it would not notice for up to half a minute that it is back."""

    def connect(self) -> Any:
        until_available(current().store.check_writable, "connecting to the broker", between=maybe_shutdown)
        return super().connect()
