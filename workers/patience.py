"""Going on when Redis, or object storage, comes back or works again."""

import logging
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from domain.operation import ErrorCode, OperationFailedError
from store.claims import Claim, Claims
from store.errors import ObjectsAwayError, Unavailable
from store.refusals import sentence

log = logging.getLogger(__name__)

T = TypeVar("T")

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0


def persist(action: Callable[[], T], what: str, between: Callable[[], None] = lambda: None) -> T:
    """The action's result, tried until Redis answers and takes writes. Only for what is safe to repeat.

    `between` is called before it is tried again: what that raises ends it.
    """
    for pause in _pauses():
        try:
            return action()
        except Unavailable as error:
            log.warning("%s: %s (%s); trying again in %.1f s", what, sentence(error), error, pause)
            time.sleep(pause)
            between()
    raise AssertionError("there is always another pause")


class Patience:
    """What an operation has while object storage is away: nobody else could do better, and others need it too. So it
    waits for `limit` seconds, as long as it is this worker's to run."""

    def __init__(self, claims: Claims, limit: float) -> None:
        self._claims = claims
        self._limit = limit

    def persist(self, claim: Claim, action: Callable[[], T], what: str) -> T:
        """The action's result, tried until Redis and object storage answer. Only for what is safe to repeat.

        Raises ObjectsAwayError when the limit is over, and OperationFailedError when the claim is good no more.
        """
        what = f"{what} of operation {claim.operation_id}"
        give_up_at = time.monotonic() + self._limit
        for pause in _pauses():
            try:
                return persist(action, what)
            except ObjectsAwayError as error:
                if time.monotonic() + pause > give_up_at:
                    raise
                log.warning("%s: object storage is away (%s); trying again in %.1f s", what, error, pause)
            time.sleep(pause)
            if not persist(lambda: self._claims.is_held(claim), what):
                raise OperationFailedError(ErrorCode.SESSION_NOT_ACTIVE, "the operation was taken from this worker")
        raise AssertionError("there is always another pause")


def _pauses() -> Iterator[float]:
    """Seconds, ever longer, without end."""
    pause = FIRST_PAUSE
    while True:
        yield pause
        pause = min(2 * pause, LONGEST_PAUSE)
