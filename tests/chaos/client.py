"""A client that never gives up: it repeats a request under its Idempotency-Key until it has an answer."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

import httpx

from tests.chaos.plan import Chapter
from tests.stories.client import SESSIONS, Json

PAUSE_SECONDS = 0.05
GIVE_UP_SECONDS = 180.0
RETRIED = {429, 503}


@dataclass(order=True)
class Outlasted:
    """How long a request took with its repeats, and the seconds that went into each outcome of a try."""

    seconds: float = 0.0
    path: str = field(default="", compare=False)
    tries: dict[str, list[float]] = field(default_factory=dict, compare=False)

    def __str__(self) -> str:
        tries = (f"{len(each)} x {outcome} in {sum(each):.1f} s" for outcome, each in self.tries.items())
        return f"{self.seconds:.1f} s for {self.path}: {', '.join(tries)}"


class Outlasting:
    """HTTP over whatever happens to the server. Its latencies are those that a caller sees, retries included."""

    def __init__(self, url: str) -> None:
        self._http = httpx.Client(base_url=url, timeout=30.0)
        self.retries = 0
        self.slowest = Outlasted()

    def post(self, path: str, body: Json, key: str) -> Json:
        return self._json(path, lambda: self._http.post(path, json=body, headers={"Idempotency-Key": key}))

    def get(self, path: str) -> Json:
        return self._json(path, lambda: self._http.get(path, headers={"Prefer": "wait=5"}))

    def delete(self, path: str) -> None:
        """A repeat finds nothing any more when the answer to the first was lost."""
        response = self._until_answered(path, lambda: self._http.delete(path))
        assert response.status_code in (204, 404), response.text

    def _json(self, path: str, send: Callable[[], httpx.Response]) -> Json:
        response = self._until_answered(path, send)
        assert response.status_code == 200, response.text
        answer: Json = response.json()
        return answer

    def _until_answered(self, path: str, send: Callable[[], httpx.Response]) -> httpx.Response:
        began, tries = time.monotonic(), defaultdict[str, list[float]](list)
        while (sent := time.monotonic()) < began + GIVE_UP_SECONDS:
            try:
                response = send()
                outcome = str(response.status_code)
            except httpx.TransportError as error:
                response, outcome = None, type(error).__name__
            tries[outcome].append(time.monotonic() - sent)
            if response is not None and response.status_code not in RETRIED:
                self.slowest = max(self.slowest, Outlasted(time.monotonic() - began, path, tries))
                return response
            self.retries += 1
            time.sleep(PAUSE_SECONDS)
        raise TimeoutError(f"no answer: {Outlasted(time.monotonic() - began, path, tries)}")


@dataclass
class Told:
    """A chapter as it went: its session, the ids of its operations, and how each of them ended."""

    name: str
    chapter: Chapter
    session_id: str = ""
    ids: list[str] = field(default_factory=list)
    ends: list[Json] = field(default_factory=list)


class Run(threading.Thread):
    """A story: each chapter's operations sent in order without waiting, and all read to their ends at last.

    `may_send(n)` blocks until the n-th operation is to be sent, so that a run lasts as long as the mischief does.
    """

    def __init__(self, url: str, name: str, chapters: list[Chapter], may_send: Callable[[int], None]) -> None:
        super().__init__(name=name, daemon=True)
        self.told = [Told(f"{name}-{number}", chapter) for number, chapter in enumerate(chapters)]
        self.client = Outlasting(url)
        self.latencies: list[float] = []
        self.error: BaseException | None = None
        self._may_send = may_send

    def run(self) -> None:
        try:
            before: Told | None = None
            for told in self.told:
                self._begin(told, before)
                self._send(told)
                before = told
            for told in self.told:
                told.ends = [self._end(told, number) for number in range(len(told.ids))]
            if before:
                self._delete_doomed(before)
        except (AssertionError, TimeoutError) as error:
            self.error = error

    def _begin(self, told: Told, before: Told | None) -> None:
        body: Json = {"base_model": "tiny", "lora_config": {"rank": 4, "alpha": 8, "dropout": 0.1}}
        if before:
            body["checkpoint_id"] = self._end(before, before.chapter.origin)["data"]["checkpoint_id"]
        told.session_id = self.client.post(SESSIONS, body, f"{told.name}-create")["session_id"]
        if before:
            self._delete_doomed(before)

    def _send(self, told: Told) -> None:
        for number, (kind, body) in enumerate(told.chapter.operations):
            self._may_send(len(self.latencies))
            began = time.monotonic()
            answer = self.client.post(f"{SESSIONS}/{told.session_id}:{kind}", body, f"{told.name}-{number}")
            self.latencies.append(time.monotonic() - began)
            told.ids.append(answer["operation_id"])

    def _delete_doomed(self, told: Told) -> None:
        for number in sorted(told.chapter.doomed):
            self.client.delete(f"/v1/rl/checkpoints/{self._end(told, number)['data']['checkpoint_id']}")

    def _end(self, told: Told, number: int) -> Json:
        kind = told.chapter.operations[number].kind
        path = f"{SESSIONS}/{told.session_id}/operations/{kind}/{told.ids[number]}"
        deadline = time.monotonic() + GIVE_UP_SECONDS
        while (operation := self.client.get(path))["status"].endswith(("PENDING", "RUNNING")):
            if time.monotonic() > deadline:
                break
        return operation
