"""A worker is announced once a task has come back to it the way that operations go."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import ConnectionError as RedisAway

from app import create_app
from settings import Settings
from stack.process import ROOT
from store import keys
from store.claims import Claim
from store.store import open_store
from tests.waiting import eventually
from tests.workers.conftest import Begin
from tests.workers.worker_harness import WorkerHarness
from workers import probe as probe_module
from workers.celery_app import app
from workers.heartbeat import Heartbeat
from workers.probe import Probe

# A worker as it is, but for where results go, and soon to give up.
WORKER = """
import sys
from workers import probe
probe.RETRY_SECONDS, probe.LONGEST_SECONDS = 0.5, 2.0
from workers.celery_app import app
app.conf.result_backend = sys.argv[1]
app.worker_main(["worker", "--without-mingle", "--without-gossip"])
"""


def test_a_worker_whose_results_go_elsewhere_is_never_announced_and_ends(redis_url: str, tmp_path: Path) -> None:
    with Redis.from_url(redis_url) as redis:
        redis.flushdb()
        clean = {name: value for name, value in os.environ.items() if not name.startswith("CELERITY_")}
        given = {**clean, "CELERITY_REDIS_URL": redis_url, "DATA_DIR": str(tmp_path), "CELERITY_DEVICE": "cpu"}
        command = [sys.executable, "-c", WORKER, "disabled"]
        ended = subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True, check=False, timeout=120)
        assert redis.zcard(keys.WORKERS) == 0, "a heartbeat would be there still"
    assert ended.returncode == 1
    assert "no task came back within 2 s" in ended.stderr
    settings = Settings(redis_url=redis_url, data_dir=tmp_path)
    store = open_store(settings)
    ready: Any = create_app(settings, store).test_client().get("/readyz")
    assert (ready.status_code, ready.json["message"]) == (503, "no live worker serves a model yet")
    store.close()


def test_the_task_goes_through_the_broker_a_script_and_the_backend_and_leaves_nothing(
    redis_url: str, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness, stopped, claimed = begin(), threading.Event(), list[str]()
    claim = harness.store.claims.claim

    def noted(operation_id: str, *rest: str) -> Claim | None:
        claimed.append(operation_id)
        return claim(operation_id, *rest)

    monkeypatch.setattr(app.tasks["probe"], "store_eager_result", True)
    monkeypatch.setattr(harness.store.claims, "claim", noted)
    waiting = threading.Thread(target=harness.worker.probe.wait, args=(stopped,))
    waiting.start()
    with Redis.from_url(redis_url) as redis:
        try:
            wait_for_message(redis, harness)
            assert waiting.is_alive()
            harness.deliver()
            waiting.join(10)
            assert not waiting.is_alive()
        finally:
            stopped.set()
        assert claimed == [harness.worker.probe.id]
        assert not redis.exists(keys.operation(harness.worker.probe.id))


def wait_for_message(redis: Redis, harness: WorkerHarness) -> None:
    eventually(lambda: redis.llen(keys.BROKER + harness.worker.worker_id))


def heartbeat_that_waits(harness: WorkerHarness) -> Heartbeat:
    """Of a worker that nobody has been told of, and whose task lies in its queue."""
    with Redis.from_url(harness.worker.settings.redis_url) as redis:
        redis.delete(keys.WORKERS)
        heartbeat = Heartbeat(harness.worker, before=harness.worker.probe.wait)
        heartbeat.start()
        wait_for_message(redis, harness)
    return heartbeat


def test_until_the_task_is_back_nobody_is_told_of_the_worker(begin: Begin) -> None:
    harness = begin(heartbeat_interval=0.01)
    heartbeat = heartbeat_that_waits(harness)
    try:
        assert harness.store.workers.known() == []
        harness.worker.probe.end()
        eventually(harness.store.workers.known)
    finally:
        heartbeat.stop()


def test_a_worker_that_is_asked_to_end_meanwhile_does(begin: Begin) -> None:
    harness = begin(heartbeat_interval=0.01)
    heartbeat = heartbeat_that_waits(harness)
    stopping = threading.Thread(target=heartbeat.stop, daemon=True)
    stopping.start()
    stopping.join(30)
    assert not stopping.is_alive()
    assert not heartbeat._thread.is_alive()
    assert harness.store.workers.known() == []


class Exited(BaseException):
    """Where os._exit would have ended the process."""


def exited(code: int) -> None:
    raise Exited(code)


def test_while_redis_is_away_the_worker_does_not_give_up(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    harness = begin()
    monkeypatch.setattr(os, "_exit", exited)
    monkeypatch.setattr(probe_module, "LONGEST_SECONDS", 0.2)
    monkeypatch.setattr(probe_module, "RETRY_SECONDS", 0.05)
    tries: list[float] = []

    def away_at_first() -> None:
        tries.append(time.monotonic())
        if tries[-1] - tries[0] < 0.6:
            raise RedisAway

    monkeypatch.setattr(harness.store, "check_writable", away_at_first)
    with pytest.raises(Exited):
        Probe(harness.store, harness.worker.worker_id).wait(threading.Event())
    assert tries[-1] - tries[0] >= 0.6
