"""Pub/sub notification of an operation's end, so that a waiting GET answers within milliseconds."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from store import keys
from store.connection import RawRedis
from store.errors import Unavailable

# A notice may be lost (Redis restarted, connection cut): whoever waits looks again after this long.
RECHECK_SECONDS = 0.5

# How soon the listener notices that it is closed.
LISTEN_SECONDS = 0.5


class Expectation:
    """One wait for one operation."""

    def __init__(self) -> None:
        self._ended = threading.Event()

    def wait(self, seconds: float) -> None:
        """Returns when a notice came, or after `seconds`, or when it is time to look again."""
        if self._ended.wait(min(seconds, RECHECK_SECONDS)):
            self._ended.clear()

    def notify(self) -> None:
        self._ended.set()


class Notices:
    """One subscription per process, begun with the first wait (so after gunicorn's fork)."""

    def __init__(self, redis: RawRedis) -> None:
        self._redis = redis
        self._lock = threading.Lock()
        self._expected: dict[str, set[Expectation]] = {}
        self._listener: threading.Thread | None = None
        self._closed = threading.Event()

    @contextmanager
    def expect(self, operation_id: str) -> Iterator[Expectation]:
        """Enter before reading the state, so that an end in between is not missed."""
        expectation = Expectation()
        with self._lock:
            self._expected.setdefault(operation_id, set()).add(expectation)
            self._listen()
        try:
            yield expectation
        finally:
            with self._lock:
                self._expected[operation_id].discard(expectation)
                if not self._expected[operation_id]:
                    del self._expected[operation_id]

    def close(self) -> None:
        """Ends the subscription; nobody may wait any more."""
        self._closed.set()
        if self._listener:
            self._listener.join()

    def _listen(self) -> None:
        if self._listener is None:
            self._listener = threading.Thread(target=self._run, name="notices", daemon=True)
            self._listener.start()

    def _run(self) -> None:
        subscription = self._redis.pubsub(ignore_subscribe_messages=True)
        while not self._closed.is_set():
            try:
                if not subscription.subscribed:
                    subscription.subscribe(keys.ENDED_CHANNEL)
                message = subscription.get_message(timeout=LISTEN_SECONDS)
            except Unavailable:
                self._closed.wait(RECHECK_SECONDS)
                continue
            if message:
                self._notify(message["data"].decode())
        subscription.close()

    def _notify(self, operation_id: str) -> None:
        with self._lock:
            for expectation in self._expected.get(operation_id, ()):
                expectation.notify()
