"""A task around its operation."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import ConnectionError as RedisAway
from redis.exceptions import ResponseError

from contract.model import ModelCard
from contract.operation import OperationKind, OperationStatus
from contract.session import LoraConfig, SessionSpec
from settings import Settings
from store import keys
from tests.engine.asking import sample_request
from tests.workers.conftest import Begin
from workers import process
from workers.celery_app import app
from workers.runtime import Runtime


@pytest.fixture
def runtime(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runtime]:
    runtime = Runtime(Settings(data_dir=tmp_path, redis_url=redis_url, device="cpu"))
    monkeypatch.setattr(process, "_runtime", runtime)
    app.loader.import_default_modules()
    runtime.engine.start()
    yield runtime
    runtime.engine.close()
    runtime.store.close()


def test_an_operation_whose_claim_failed_is_not_taken_to_run_here(redis_url: str, runtime: Runtime) -> None:
    with Redis.from_url(redis_url) as redis:
        redis.set(keys.operation("spoilt"), "not a hash")
        with pytest.raises(ResponseError):
            app.tasks["sample"].apply(task_id="spoilt", throw=True)
        redis.delete(keys.operation("spoilt"))
    assert runtime.stranded.here == set()


def test_an_operation_that_may_have_killed_its_workers_is_begun_when_nothing_else_runs(
    redis_url: str, runtime: Runtime
) -> None:
    card = ModelCard(name="not/here", vocab_size=8, context_length=8)
    session = runtime.store.sessions.create(
        SessionSpec(base_model=card, lora=LoraConfig(), seed=1), [runtime.worker_id]
    )
    with Redis.from_url(redis_url) as redis:
        (creation,) = (id.decode() for id in redis.zrange(keys.lane(session.id), 0, -1))
        redis.hset(keys.operation(creation), "attempts", 2)
        with runtime.turns.beside_others():
            task = threading.Thread(target=app.tasks["create_session"].apply, kwargs={"task_id": creation})
            task.start()
            task.join(0.3)
            assert redis.hget(keys.operation(creation), "state") == b"READY"
        task.join()
        assert redis.hmget(keys.operation(creation), "state", "attempts") == [b"RUNNING", b"3"]


@pytest.mark.parametrize("call", ["claim", "finish"])
def test_an_operation_ends_once_though_redis_is_away_when_it_begins_or_ends(
    begin: Begin, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    shift, pauses = begin(), list[float]()
    session = shift.session()
    answer = getattr(shift.store.claims, call)

    def away_at_first(*args: Any, **kwargs: Any) -> Any:
        if len(pauses) < 2:
            raise RedisAway
        return answer(*args, **kwargs)

    monkeypatch.setattr(shift.store.claims, call, away_at_first)
    monkeypatch.setattr("workers.patience.time.sleep", pauses.append)
    sampled = shift.run(session, OperationKind.SAMPLE, sample_request([[1, 2]], max_tokens=2))
    assert sampled.status is OperationStatus.COMPLETED
    assert len(pauses) == 2
    assert shift.worker.stranded.here == set(), "it has left"
