"""Prefer: wait=N (RFC 7240): how long a GET of an unfinished operation may be held."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from flask import request

from app.auth import check_again
from app.state import state
from schemas.problems import refusal

HEADER = "Prefer"
APPLIED = "Preference-Applied"
SECONDS = re.compile(r"[0-9]{1,9}")


def preferred_wait(default: float) -> tuple[float, dict[str, str]]:
    """Seconds to wait, `default` when there is no preference, and the header that says which preference was followed.

    Other preferences are passed over, as the RFC asks; a wait that is not a number of seconds is refused.
    """
    settings = state().settings
    asked = _asked()
    if asked is None:
        return default, {}
    if not SECONDS.fullmatch(asked):
        raise refusal(HEADER, "wait must be a number of seconds")
    seconds = min(float(asked), settings.max_wait)
    return seconds, {APPLIED: f"wait={seconds:g}"}


@contextmanager
def held() -> Iterator[bool]:
    """Whether this request may be held: only so many are, to keep threads of the process free.

    Raises Unauthorized at the end, when its key has been revoked meanwhile.
    """
    places = state().held_requests
    if not places.acquire(blocking=False):
        yield False
        return
    try:
        yield True
    finally:
        places.release()
    check_again()


def _asked() -> str | None:
    """The value of the first wait preference; the first one counts, says the RFC."""
    for preference in ",".join(request.headers.getlist(HEADER)).split(","):
        name, _, value = preference.partition(";")[0].partition("=")
        if name.strip().lower() == "wait":
            return value.strip().strip('"')
    return None
