"""Which refusals are passing, and how long to wait before a call is repeated."""

import time

import httpx

from celerity_client.errors import ApiError

PASSING = (429, 502, 503, 504)
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 10.0


class Retry:
    """The tries of one call, repeated for up to `seconds` while the server is away or has no room."""

    def __init__(self, seconds: float) -> None:
        self._deadline = time.monotonic() + seconds
        self._pause = FIRST_PAUSE

    def after_error(self, error: httpx.TransportError, url: httpx.URL) -> float:
        """Seconds to wait when there was no answer. Raises ApiError when the time is up."""
        return self._wait(ApiError(0, f"no answer from {url}: {error}"), self._pause)

    def after_refusal(self, answer: httpx.Response) -> float:
        """Seconds to wait. Raises ApiError for what will not pass, and when the time is up."""
        refusal = ApiError(answer.status_code, _message(answer))
        if answer.status_code not in PASSING:
            raise refusal
        stated = answer.headers.get("Retry-After", "")
        return self._wait(refusal, float(stated) if stated.isdecimal() else self._pause)

    def _wait(self, refusal: ApiError, seconds: float) -> float:
        if time.monotonic() + seconds > self._deadline:
            raise refusal
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        return seconds


def _message(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["message"])
    except (ValueError, KeyError, TypeError):
        # Not ours: a proxy's, say.
        return answer.text[:200]
