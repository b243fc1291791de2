# Generated from _async/ by client/generate_sync.py.
"""One HTTP call, repeated while that makes sense: a POST goes under an Idempotency-Key and so takes effect once."""

import time
from typing import Any
from uuid import uuid4

import httpx

from celerity_client.results import Json
from celerity_client.retry import Retry

# A held GET takes less.
ANSWER_SECONDS = 90.0
# As many connections as there are waits: httpx's own hundred would keep the next one waiting for a wait to end.
LIMITS = httpx.Limits()


class Http:
    """`transport` stands for the network in tests."""

    def __init__(self, url: str, key: str, retry_seconds: float, transport: httpx.BaseTransport | None = None) -> None:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._http = httpx.Client(
            base_url=url, headers=headers, timeout=ANSWER_SECONDS, limits=LIMITS, transport=transport
        )
        self._retry_seconds = retry_seconds

    def close(self) -> None:
        self._http.close()

    def call(self, method: str, path: str, body: Json | None = None, **headers: str) -> Any:
        """The answer's JSON, None where it has none. Raises ApiError."""
        if method == "POST":
            headers["Idempotency-Key"] = str(uuid4())
        retry = Retry(self._retry_seconds)
        while True:
            try:
                answer = self._http.request(method, path, json=body, headers=headers)
            except httpx.TransportError as error:
                pause = retry.after_error(error, self._http.base_url)
            else:
                if answer.is_success:
                    return answer.json() if answer.content else None
                pause = retry.after_refusal(answer)
            time.sleep(pause)
