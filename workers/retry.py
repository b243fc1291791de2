"""Trying again until Redis, or object storage, is available."""

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


def until_available(
    action: Callable[[], T],
    what: str,
    between: Callable[[], None] = lambda: None,
    away: tuple[type[Exception], ...] = Unavailable,
) -> T:
    """The action's result, tried until Redis answers and takes writes. Only for actions that are safe to repeat.

    `what` names the action in the log. `between` is called before each further try; an exception from it ends them.
    `away` are the exceptions after which it is tried again.
    """
    for pause in _pauses():
        try:
            return action()
        except away as error:
            log.warning("%s: %s (%s); trying again in %.1f s", what, _what_is_away(error), error, pause)
            time.sleep(pause)
            between()
    raise AssertionError("there is always another pause")


class OperationRetry:
    """Retries what an operation needs of object storage, which is away for every other worker too: for up to `limit`
    seconds, as long as the operation is claimed by this worker."""

    def __init__(self, claims: Claims, limit: float) -> None:
        self._claims = claims
        self._limit = limit

    def until_available(self, claim: Claim, action: Callable[[], T], what: str) -> T:
        """The action's result, tried until Redis and object storage answer. Only for actions that are safe to repeat.

        Raises ObjectsAwayError after the limit, and OperationFailedError when the claim is no longer valid.
        """
        what = f"{what} of operation {claim.operation_id}"
        give_up_at = time.monotonic() + self._limit
        for pause in _pauses():
            try:
                return until_available(action, what)
            except ObjectsAwayError as error:
                if time.monotonic() + pause > give_up_at:
                    raise
                log.warning("%s: object storage is away (%s); trying again in %.1f s", what, error, pause)
            time.sleep(pause)
            if not until_available(lambda: self._claims.is_held(claim), what):
                raise OperationFailedError(ErrorCode.SESSION_NOT_ACTIVE, "the operation was taken from this worker")
        raise AssertionError("there is always another pause")


def _what_is_away(error: Exception) -> str:
    return "object storage is away" if isinstance(error, ObjectsAwayError) else sentence(error)


def _pauses() -> Iterator[float]:
    """Seconds between tries, doubled each time up to a limit; endless."""
    pause = FIRST_PAUSE
    while True:
        yield pause
        pause = min(2 * pause, LONGEST_PAUSE)
