"""A client that never gives up: it repeats a request under its Idempotency-Key until it has an answer."""

import time
from collections import defaultdict
from dataclasses import dataclass, field

import httpx

from testing.bodies import Json

PAUSE_SECONDS = 0.05
GIVE_UP_SECONDS = 180.0
RETRIED = {429, 503}


@dataclass(order=True)
class Latency:
    """How long a request took with its repeats, and the seconds that went into each outcome of a try."""

    seconds: float = 0.0
    path: str = field(default="", compare=False)
    tries: dict[str, list[float]] = field(default_factory=dict, compare=False)

    def __str__(self) -> str:
        tries = (f"{len(each)} x {outcome} in {sum(each):.1f} s" for outcome, each in self.tries.items())
        return f"{self.seconds:.1f} s for {self.path}: {', '.join(tries)}"


class RetryingClient:
    """HTTP over whatever happens to the server. Its latencies are those that a caller sees, retries included."""

    def __init__(self, url: str) -> None:
        self._http = httpx.Client(base_url=url, timeout=30.0)
        self.retries = 0
        self.slowest = Latency()

    def post(self, path: str, body: Json, key: str) -> Json:
        """Asserts that it is not refused."""
        return checked(self.try_post(path, body, key))

    def try_post(self, path: str, body: Json, key: str) -> httpx.Response:
        return self._until_answered("POST", path, json=body, headers={"Idempotency-Key": key})

    def get(self, path: str) -> Json:
        """Held by the server for a while where that has something to wait for."""
        return checked(self.try_get(path, wait=5))

    def try_get(self, path: str, wait: int = 0) -> httpx.Response:
        return self._until_answered("GET", path, headers={"Prefer": f"wait={wait}"})

    def put(self, url: str, body: Json) -> None:
        response = self._until_answered("PUT", url, json=body)
        assert response.status_code == 200, response.text

    def delete(self, path: str) -> None:
        """A repeat finds nothing any more when the answer to the first was lost."""
        response = self._until_answered("DELETE", path)
        assert response.status_code in (204, 404), response.text

    def _until_answered(
        self, method: str, path: str, json: Json | None = None, headers: dict[str, str] | None = None
    ) -> httpx.Response:
        began, tries = time.monotonic(), defaultdict[str, list[float]](list)
        while (sent := time.monotonic()) < began + GIVE_UP_SECONDS:
            try:
                response = self._http.request(method, path, json=json, headers=headers)
                outcome = str(response.status_code)
            except httpx.TransportError as error:
                response, outcome = None, type(error).__name__
            tries[outcome].append(time.monotonic() - sent)
            if response is not None and response.status_code not in RETRIED:
                self.slowest = max(self.slowest, Latency(time.monotonic() - began, path, tries))
                return response
            self.retries += 1
            time.sleep(PAUSE_SECONDS)
        raise TimeoutError(f"no answer: {Latency(time.monotonic() - began, path, tries)}")


def checked(response: httpx.Response) -> Json:
    assert response.status_code == 200, response.text
    answer: Json = response.json()
    return answer
