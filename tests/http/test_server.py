"""The real server: what only a real socket shows."""

import http.client
import runpy
import select
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import orjson
import pytest
from redis import Redis

from domain.operation import OperationStatus
from settings import Settings
from stack.address import free_port
from store import keys
from store.store import Store
from tests.http.conftest import SESSIONS
from tests.http.serving import ROOT, request, serving
from tests.waiting import eventually

LIMIT = 20_000_000
ASKED = orjson.dumps({"base_model": "org/tiny"})
SAMPLE = orjson.dumps(
    {"prompt": {"chunks": [{"encoded_text": {"tokens": [1, 2]}}]}, "sampling_params": {"max_tokens": 2}}
)
CANCELLED = "TRAINING_OPERATION_ERROR_CODE_CANCELLED"


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def server(redis_url: str, store: Store, tmp_path: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:  # noqa: ARG001 - the store holds the worker
    """The server with a small body limit."""
    settings = {"CELERITY_REDIS_URL": redis_url, "CELERITY_MAX_BODY_BYTES": str(LIMIT), "DATA_DIR": str(tmp_path)}
    with serving(port, **settings) as server:
        yield server


@pytest.mark.usefixtures("server")
def test_bodies_of_known_and_unknown_length(port: int) -> None:
    body = ASKED
    assert request(port, "POST", SESSIONS, body)[0] == 200
    assert request(port, "POST", SESSIONS, iter([body[:5], body[5:]]), chunked=True)[0] == 200
    padded = body + b" " * (LIMIT - len(body))
    assert request(port, "POST", SESSIONS, padded)[0] == 200
    assert request(port, "POST", SESSIONS, iter([padded]), chunked=True)[0] == 200


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("excess", [1, 2, 20_000_000])
def test_a_body_over_the_limit_is_a_413_however_it_is_sent(port: int, excess: int) -> None:
    large = b" " * (LIMIT + excess)
    for status, error in (
        request(port, "POST", SESSIONS, large),
        request(port, "POST", SESSIONS, iter([large[:LIMIT], large[LIMIT:]]), chunked=True),
    ):
        assert (status, str(LIMIT) in error["message"]) == (413, True)
    assert request(port, "GET", SESSIONS)[0] == 200


def test_when_it_is_asked_to_end_it_answers_what_it_holds_and_takes_nothing_new(
    server: subprocess.Popen[bytes], port: int, store: Store, redis_url: str
) -> None:
    session_id = request(port, "POST", SESSIONS, orjson.dumps({"base_model": "org/tiny"}))[1]["session_id"]
    path = f"{SESSIONS}/{session_id}"
    operation_id = request(port, "POST", f"{path}:optim-step", b"{}")[1]["operation_id"]
    with ThreadPoolExecutor() as pool, Redis.from_url(redis_url) as redis:
        held = pool.submit(request, port, "GET", f"{path}/operations/optim-step/{operation_id}", Prefer="wait=9")
        eventually(
            lambda: redis.pubsub_numsub(keys.ENDED_CHANNEL)[0][1] == 1, lambda: "it waits for the operation's end", 30
        )
        server.send_signal(signal.SIGTERM)
        eventually(lambda: not answers(port), lambda: "it takes nothing new", 30)
        assert not held.done()
        assert store.operations.cancel(session_id, operation_id).status is OperationStatus.FAILED
        status, answer = held.result()
    assert (status, answer["status"]) == (200, "TRAINING_OPERATION_STATUS_FAILED")
    assert server.wait(40) == 0


def test_it_waits_longer_at_its_end_than_a_request_may_be_held() -> None:
    assert runpy.run_path(str(ROOT / "app" / "gunicorn.conf.py"))["graceful_timeout"] > Settings().max_wait


def answers(port: int) -> bool:
    try:
        return request(port, "GET", "/healthz", timeout=0.5)[0] == 200
    except OSError:
        return False


@pytest.mark.usefixtures("server")
def test_with_256_requests_held_others_are_served_at_once_and_all_hear_of_the_end(port: int) -> None:
    session = f"{SESSIONS}/{request(port, 'POST', SESSIONS, ASKED)[1]['session_id']}"
    operation_id = request(port, "POST", f"{session}:sample", SAMPLE)[1]["operation_id"]
    waiting = [http.client.HTTPConnection("127.0.0.1", port, timeout=20) for _ in range(256)]
    for each in waiting:
        each.request("GET", f"{session}/operations/sample/{operation_id}", headers={"Prefer": "wait=30"})
    assert request(port, "POST", f"{session}:sample", SAMPLE)[0] == 200
    assert request(port, "GET", session)[0] == 200
    assert select.select([each.sock for each in waiting], [], [], 0)[0] == [], "all of them are held"
    assert request(port, "POST", f"{session}/operations/{operation_id}:cancel")[0] == 200
    ends = [orjson.loads(each.getresponse().read()) for each in waiting]
    assert [end for end in ends if end.get("error", {}).get("code") != CANCELLED] == []
    for each in waiting:
        each.close()
