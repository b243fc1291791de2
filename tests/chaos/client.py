"""A client that never gives up: it repeats a request under its Idempotency-Key until it has an answer."""

import threading
import time
from collections.abc import Callable

import httpx

from tests.chaos.plan import Planned
from tests.stories.client import SESSIONS, Json

PAUSE_SECONDS = 0.05
GIVE_UP_SECONDS = 180.0
RETRIED = {429, 503}


class Outlasting:
    """HTTP over whatever happens to the server. Its latencies are those that a caller sees, retries included."""

    def __init__(self, url: str) -> None:
        self._http = httpx.Client(base_url=url, timeout=30.0)
        self.retries = 0

    def post(self, path: str, body: Json, key: str) -> Json:
        return self._until_answered(lambda: self._http.post(path, json=body, headers={"Idempotency-Key": key}))

    def get(self, path: str) -> Json:
        return self._until_answered(lambda: self._http.get(path, headers={"Prefer": "wait=5"}))

    def _until_answered(self, send: Callable[[], httpx.Response]) -> Json:
        deadline = time.monotonic() + GIVE_UP_SECONDS
        while time.monotonic() < deadline:
            try:
                response = send()
            except httpx.TransportError:
                response = None
            if response is not None and response.status_code not in RETRIED:
                assert response.status_code == 200, response.text
                answer: Json = response.json()
                return answer
            self.retries += 1
            time.sleep(PAUSE_SECONDS)
        raise TimeoutError(f"no answer in {GIVE_UP_SECONDS:.0f} s")


class Run(threading.Thread):
    """One session: its planned operations sent in order without waiting, then each read to its end.

    `may_send(n)` blocks until the n-th operation is to be sent, so that a run lasts as long as the mischief does.
    """

    def __init__(self, url: str, name: str, operations: list[Planned], may_send: Callable[[int], None]) -> None:
        super().__init__(name=name, daemon=True)
        self.operations = operations
        self.client = Outlasting(url)
        self.session_id = ""
        self.ids: list[str] = []
        self.ends: list[Json] = []
        self.latencies: list[float] = []
        self.error: BaseException | None = None
        self._may_send = may_send

    def run(self) -> None:
        try:
            self._send_all()
            self._read_all()
        except (AssertionError, TimeoutError) as error:
            self.error = error

    def _send_all(self) -> None:
        body = {"base_model": "tiny", "lora_config": {"rank": 4, "alpha": 8, "dropout": 0.1}}
        self.session_id = self.client.post(SESSIONS, body, f"{self.name}-create")["session_id"]
        for number, (kind, body) in enumerate(self.operations):
            self._may_send(number)
            began = time.monotonic()
            answer = self.client.post(f"{SESSIONS}/{self.session_id}:{kind}", body, f"{self.name}-{number}")
            self.latencies.append(time.monotonic() - began)
            self.ids.append(answer["operation_id"])

    def _read_all(self) -> None:
        for (kind, _), operation_id in zip(self.operations, self.ids, strict=True):
            path = f"{SESSIONS}/{self.session_id}/operations/{kind}/{operation_id}"
            deadline = time.monotonic() + GIVE_UP_SECONDS
            while (operation := self.client.get(path))["status"].endswith(("PENDING", "RUNNING")):
                if time.monotonic() > deadline:
                    break
            self.ends.append(operation)
