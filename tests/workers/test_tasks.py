"""A task around its operation."""

import threading
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import ConnectionError as RedisAway

from domain.operation import OperationKind, OperationStatus
from domain.session import LoraConfig, SessionSpec
from store import keys
from tests.engine.calls import sample_request
from tests.workers.conftest import Begin
from workers.celery_app import app


def test_an_operation_whose_claim_failed_is_not_taken_to_run_here_nor_ended(redis_url: str, begin: Begin) -> None:
    harness = begin()
    with Redis.from_url(redis_url) as redis:
        redis.set(keys.operation("spoilt"), "not a hash")
        app.tasks["sample"].apply(task_id="spoilt")
        assert redis.get(keys.operation("spoilt")) == b"not a hash"
    assert harness.worker.lost_operations.running == set()


def test_an_operation_that_may_have_killed_its_workers_is_begun_when_nothing_else_runs(
    redis_url: str, begin: Begin
) -> None:
    harness = begin()
    spec = SessionSpec(base_model=harness.card, lora=LoraConfig(), seed=1)
    session = harness.store.sessions.create(spec, [harness.worker.worker_id])
    with Redis.from_url(redis_url) as redis:
        (creation,) = (id.decode() for id in redis.zrange(keys.session_queue(session.id), 0, -1))
        redis.hset(keys.operation(creation), "attempts", 2)
        with harness.worker.operation_lock.shared():
            task = threading.Thread(target=app.tasks["create_session"].apply, kwargs={"task_id": creation})
            task.start()
            task.join(0.3)
            assert redis.hget(keys.operation(creation), "state") == b"READY"
        task.join()
        assert redis.hmget(keys.operation(creation), "state", "attempts") == [b"COMPLETED", b"3"]


@pytest.mark.parametrize("call", ["claim", "finish"])
def test_an_operation_ends_once_though_redis_is_away_when_it_begins_or_ends(
    begin: Begin, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    harness, pauses = begin(), list[float]()
    session = harness.session()
    answer = getattr(harness.store.claims, call)

    def away_at_first(*args: Any, **kwargs: Any) -> Any:
        if len(pauses) < 2:
            raise RedisAway
        return answer(*args, **kwargs)

    monkeypatch.setattr(harness.store.claims, call, away_at_first)
    monkeypatch.setattr("workers.retry.time.sleep", pauses.append)
    sampled = harness.run(session, OperationKind.SAMPLE, sample_request([[1, 2]], max_tokens=2))
    assert sampled.status is OperationStatus.COMPLETED
    assert len(pauses) == 2
    assert harness.worker.lost_operations.running == set(), "it has left"
