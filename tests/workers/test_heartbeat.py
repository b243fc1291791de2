"""What a worker does about others, and about itself, with its heartbeat."""

import signal
import time
from collections.abc import Iterator
from concurrent.futures import wait
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import ConnectionError as RedisAway

from domain.model import ModelCard
from domain.session import LoraConfig, SessionSpec
from settings import Settings
from store import keys
from store.workers import Announcement
from tests.gate import Gate
from tests.waiting import eventually
from workers import heartbeat as heartbeat_module
from workers.heartbeat import Heartbeat
from workers.runtime import Runtime

TIMEOUT = 30.0
CARD = ModelCard(name="tiny", vocab_size=8, context_length=8)


@pytest.fixture
def runtime(redis_url: str, tmp_path: Path) -> Iterator[Runtime]:
    with Redis.from_url(redis_url) as redis:
        redis.flushdb()
    settings = Settings(
        data_dir=tmp_path, redis_url=redis_url, device="cpu", heartbeat_interval=0.01, heartbeat_timeout=TIMEOUT
    )
    runtime = Runtime(settings)
    runtime.engine.start()
    yield runtime
    runtime.engine.close()
    runtime.store.close()


def session_of_another(runtime: Runtime, redis_url: str) -> str:
    """The id of a session whose worker was heard of for the last time an hour ago."""
    other = Announcement(
        host="h", pid=1, device="cpu", models=(CARD,), capacity=9, resident=0, resident_bytes=0, free_bytes=1 << 40,
        reserved_bytes=0,
    )  # fmt: skip
    runtime.store.workers.beat("another", other)
    spec = SessionSpec(base_model=CARD, lora=LoraConfig(), seed=1)
    session = runtime.store.sessions.create(spec, ["another"])
    with Redis.from_url(redis_url) as redis:
        redis.zadd(keys.WORKERS, {"another": time.time() - 3600})
    return session.id


def own_session(runtime: Runtime) -> str:
    """The id of a session of this worker, whose creation is its first operation."""
    runtime.store.workers.beat(runtime.worker_id, runtime.announcement())
    spec = SessionSpec(base_model=CARD, lora=LoraConfig(), seed=1)
    return runtime.store.sessions.create(spec, [runtime.worker_id]).id


def creation_of(redis: Any, session_id: str) -> str:
    (operation_id,) = redis.zrange(keys.session_queue(session_id), 0, -1)
    return str(operation_id.decode())


def holder(runtime: Runtime, session_id: str) -> str:
    return runtime.store.sessions.get(session_id).worker_id


class Clock:
    """Stands where the heartbeat's clock is, so that a busy machine cannot be late."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(heartbeat_module, "time", SimpleNamespace(monotonic=lambda: self.now))


def test_it_takes_over_from_a_lost_worker_once_it_has_been_connected_itself_for_the_whole_timeout(
    runtime: Runtime, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, session_id = Clock(monkeypatch), session_of_another(runtime, redis_url)
    heartbeat = Heartbeat(runtime)
    heartbeat._beat_if_connected()
    clock.now += TIMEOUT * 0.8
    with monkeypatch.context() as outage:
        outage.setattr(runtime.store.workers, "beat", raises_away)
        heartbeat._beat_if_connected()
    for _ in range(2):
        clock.now += TIMEOUT * 0.6
        heartbeat._beat_if_connected()
    assert holder(runtime, session_id) == "another", "after an outage every heartbeat looks old"
    clock.now += TIMEOUT * 0.6
    heartbeat._beat_if_connected()
    assert holder(runtime, session_id) == runtime.worker_id


def raises_away(*_: object) -> float:
    raise RedisAway


def test_one_that_has_left_is_not_waited_for(runtime: Runtime, redis_url: str) -> None:
    session_id = session_of_another(runtime, redis_url)
    runtime.store.workers.leave("another")
    Heartbeat(runtime)._beat_if_connected()
    assert holder(runtime, session_id) == runtime.worker_id


def test_a_worker_that_cannot_say_that_it_is_alive_ends(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    signals: list[int] = []
    monkeypatch.setattr("os.kill", lambda _, number: signals.append(number))
    monkeypatch.setattr(runtime.store.workers, "beat", lambda *_: 1 / 0)
    heartbeat = Heartbeat(runtime)
    with pytest.raises(ZeroDivisionError):
        heartbeat._run()
    assert signals == [signal.SIGTERM]
    with monkeypatch.context() as away:
        away.setattr(runtime.store.workers, "beat", raises_away)
        heartbeat = Heartbeat(runtime)
        heartbeat.start()
        time.sleep(0.1)
        heartbeat.stop()
    assert signals == [signal.SIGTERM], "an outage is no fault of its"


def test_it_sees_to_what_is_overdue_not_its_own_and_to_be_swept(
    runtime: Runtime, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_id, asked = own_session(runtime), list[set[str]]()
    monkeypatch.setattr(runtime.residency, "release_others", lambda read_held: asked.append(read_held()))
    heartbeat = Heartbeat(runtime)
    heartbeat._last_sweep -= 3600
    with Redis.from_url(redis_url) as redis:
        redis.zincrby(keys.DUE, -3600, creation_of(redis, session_id))
        redis.sadd(keys.GARBAGE, "nothing/here")
        assert redis.llen(keys.BROKER + runtime.worker_id) == 1
        heartbeat._beat_if_connected()
        assert redis.llen(keys.BROKER + runtime.worker_id) == 2, "the message was sent again"
        eventually(lambda: redis.scard(keys.GARBAGE) == 0)
    assert asked == [{session_id}]


def test_a_sweep_that_takes_long_holds_up_no_heartbeat(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, heartbeat = Gate(monkeypatch, runtime.store.janitor, "sweep"), Heartbeat(runtime)
    for _ in range(3):
        heartbeat._last_sweep -= 3600
        heartbeat._beat_if_connected()
    gate.wait()
    assert [worker.id for worker in runtime.store.workers.live()] == [runtime.worker_id]
    assert gate.left == 0, "one at a time"
    gate.open()
    assert heartbeat._sweep
    heartbeat._sweep.result()


def test_what_a_sweep_raises_is_a_fault_unless_redis_is_away(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    heartbeat = Heartbeat(runtime)
    for sweep in (raises_away, lambda: 1 / 0):
        monkeypatch.setattr(runtime.store.janitor, "sweep", sweep)
        heartbeat._begin_sweep()
        assert heartbeat._sweep
        wait([heartbeat._sweep])
    with pytest.raises(ZeroDivisionError):
        heartbeat._begin_sweep()


def test_what_the_server_believes_to_run_here_and_does_not_is_started_again(runtime: Runtime, redis_url: str) -> None:
    session_id, heartbeat = own_session(runtime), Heartbeat(runtime)
    with Redis.from_url(redis_url) as redis:
        creation = creation_of(redis, session_id)
        assert runtime.store.claims.claim(creation, runtime.worker_id, "lost") is not None
        for state in (b"RUNNING", b"READY"):
            heartbeat._last_look -= 3600
            heartbeat._beat_if_connected()
            assert redis.hget(keys.operation(creation), "state") == state
