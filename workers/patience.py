"""Going on when Redis comes back."""

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from store.errors import Unavailable

log = logging.getLogger(__name__)

T = TypeVar("T")

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0


def persist(action: Callable[[], T], what: str) -> T:
    """The action's result, tried until Redis answers. Only for what is safe to repeat."""
    pause = FIRST_PAUSE
    while True:
        try:
            return action()
        except Unavailable as error:
            log.warning("%s: Redis is away (%s); trying again in %.1f s", what, error, pause)
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
