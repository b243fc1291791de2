"""One HTTP call, repeated while that makes sense: a POST goes under an Idempotency-Key and so takes effect once."""

import time
from typing import Any
from uuid import uuid4

import httpx2

from client.errors import ApiError

Json = dict[str, Any]
PASSING = (429, 502, 503, 504)
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 10.0


class Transport:
    """`patience` is how many seconds a call is repeated while the server is away or has no room.

    `handler` stands for the network in tests.
    """

    def __init__(self, url: str, key: str, patience: float, handler: httpx2.BaseTransport | None = None) -> None:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._http = httpx2.Client(base_url=url, headers=headers, timeout=90.0, transport=handler)
        self._patience = patience

    def close(self) -> None:
        self._http.close()

    def call(self, method: str, path: str, body: Json | None = None, **headers: str) -> Any:
        """The answer's JSON, None where it has none. Raises ApiError."""
        if method == "POST":
            headers["Idempotency-Key"] = str(uuid4())
        deadline, pause = time.monotonic() + self._patience, FIRST_PAUSE
        while True:
            try:
                answer = self._http.request(method, path, json=body, headers=headers)
            except httpx2.TransportError as error:
                refusal, wait = ApiError(0, f"no answer from {self._http.base_url}: {error}"), pause
            else:
                if answer.is_success:
                    return answer.json() if answer.content else None
                refusal = ApiError(answer.status_code, _message(answer))
                wait = _retry_after(answer, pause)
                if answer.status_code not in PASSING:
                    raise refusal
            if time.monotonic() + wait > deadline:
                raise refusal
            time.sleep(wait)
            pause = min(2 * pause, LONGEST_PAUSE)


def _message(answer: httpx2.Response) -> str:
    try:
        return str(answer.json()["message"])
    except (ValueError, KeyError, TypeError):
        # Not ours: a proxy's, say.
        return answer.text[:200]


def _retry_after(answer: httpx2.Response, pause: float) -> float:
    stated = answer.headers.get("Retry-After", "")
    return float(stated) if stated.isdecimal() else pause
