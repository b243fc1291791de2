"""A check whose result is cached for some seconds."""

import logging
import threading
import time
from collections.abc import Callable

from store.errors import ObjectsAwayError

log = logging.getLogger(__name__)


class CachedCheck:
    """Checks again after `seconds`. While one caller does, the others get the last result: at most one of them waits
    for the check, however often this is called."""

    def __init__(self, check: Callable[[], None], seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        """`check` raises ObjectsAwayError."""
        self._check, self._seconds, self._clock = check, seconds, clock
        self._asking = threading.Lock()
        self._asked_at: float | None = None
        self._is_good = True

    def is_good(self) -> bool:
        if self._is_old() and self._asking.acquire(blocking=False):
            try:
                self._is_good = self._ask()
                self._asked_at = self._clock()
            finally:
                self._asking.release()
        return self._is_good

    def _is_old(self) -> bool:
        return self._asked_at is None or self._clock() - self._asked_at >= self._seconds

    def _ask(self) -> bool:
        try:
            self._check()
        except ObjectsAwayError as error:
            log.warning("object storage is away: %s", error)
            return False
        return True
