"""Small payloads stay in Redis, large ones become objects, and neither outlives its use."""

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from domain.operation import OperationKind
from domain.optim_step import OptimStepResult
from domain.sample import SampleRequest, SampleResult, SamplingParams, Sequence, StopReason
from settings import Settings
from store.errors import NotFoundError, ObjectMissingError, ObjectsAwayError, TooManyWaitingError
from tests.store.conftest import WORKER, Bench

LARGE = np.arange(1000, dtype=np.int32)
SMALL = np.arange(3, dtype=np.int32)


def request(prompt: np.ndarray) -> SampleRequest:
    return SampleRequest(prompts=(prompt,), num_samples=1, params=SamplingParams(), seed=1)


def result(tokens: np.ndarray) -> SampleResult:
    return SampleResult((Sequence(tokens, -tokens.astype(np.float32), StopReason.STOP),))


def objects(settings: Settings) -> list[Path]:
    return [path for path in (settings.data_dir / "objects").rglob("*") if path.is_file()]


def test_a_small_request_and_result_make_no_object(bench: Bench, settings: Settings) -> None:
    session = bench.running_session()
    operation = bench.store.operations.accept(session.id, OperationKind.SAMPLE, request(SMALL))
    bench.run(operation.id, result(SMALL))
    ended = bench.store.operations.get(session.id, operation.id)
    kept = bench.store.operations.result(ended, SampleResult).sequences[0]
    assert kept.tokens.tolist() == [0, 1, 2]
    assert kept.logprobs.tolist() == [0.0, -1.0, -2.0]
    assert objects(settings) == []


def test_a_large_result_is_an_object_and_the_request_goes_when_it_has_been_used(
    bench: Bench, settings: Settings
) -> None:
    session = bench.running_session()
    operation = bench.store.operations.accept(session.id, OperationKind.SAMPLE, request(LARGE))
    assert len(objects(settings)) == 1
    bench.run(operation.id, result(LARGE))
    bench.store.janitor.delete_garbage()
    assert [path.parts[-3] for path in objects(settings)] == ["results"]
    ended = bench.store.operations.get(session.id, operation.id)
    assert np.array_equal(bench.store.operations.result(ended, SampleResult).sequences[0].tokens, LARGE)


def test_a_refused_result_leaves_no_object(bench: Bench, settings: Settings) -> None:
    session = bench.running_session()
    operation = bench.store.operations.accept(session.id, OperationKind.SAMPLE, request(SMALL))
    claim = bench.claim(operation.id)
    bench.store.sessions.move(session.id, WORKER, "worker-2")
    assert not bench.store.claims.finish(claim, result(LARGE))
    assert objects(settings) == []


def test_a_refused_request_leaves_no_object(bench: Bench, settings: Settings) -> None:
    session = bench.running_session()
    for _ in range(settings.max_waiting_operations):
        bench.store.operations.accept(session.id, OperationKind.SAMPLE, request(SMALL))
    with pytest.raises(TooManyWaitingError):
        bench.store.operations.accept(session.id, OperationKind.SAMPLE, request(LARGE))
    assert objects(settings) == []


@pytest.mark.parametrize("half", [False, True])
def test_what_the_end_of_a_process_left_goes_a_day_later_and_nothing_else_does(
    bench: Bench, settings: Settings, monkeypatch: pytest.MonkeyPatch, half: bool
) -> None:
    """One process ended before its request was accepted, or in the middle of writing it; one before its result was."""
    session = bench.running_session()
    accepted = bench.store.operations.accept(session.id, OperationKind.SAMPLE, request(LARGE))
    claim = bench.claim(accepted.id)
    bench.store.claims.store_result(claim, result(LARGE))
    with monkeypatch.context() as patch:
        patch.setattr(bench.store._context.scripts, "run", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            bench.store.operations.accept(session.id, OperationKind.SAMPLE, request(LARGE))
    lost = [settings.data_dir / "objects" / path for path in on_their_way(bench)]
    assert [path.is_file() for path in lost] == [True, True]
    if half:
        for path in lost:
            path.rename(f"{path}#1")
    bench.store.janitor.sweep()
    assert len(objects(settings)) == 3
    age(bench)
    bench.store.janitor.sweep()
    assert [path.name for path in objects(settings)] == [accepted.id]
    assert bench.store.claims.request(claim, SampleRequest).prompts[0].tolist() == LARGE.tolist()


def test_what_records_refer_to_stays_for_longer_than_a_day(bench: Bench, settings: Settings) -> None:
    session = bench.running_session()
    sample, step = (
        bench.store.operations.accept(session.id, kind, request(LARGE))
        for kind in (OperationKind.SAMPLE, OperationKind.OPTIM_STEP)
    )
    bench.run(sample.id, result(LARGE))
    claim = bench.claim(step.id)
    bench.store.claims.finish(claim, OptimStepResult(step=1, metrics={}))
    assert bench.store.snapshots.save(claim, b"the adapter")
    assert on_their_way(bench) == []
    assert {path.parts[-3] for path in objects(settings)} >= {"results", "snapshots"}


def on_their_way(bench: Bench) -> list[str]:
    """The paths of objects that no record refers to."""
    redis: Any = bench.redis
    return [path.decode() for path in redis.zrange("celerity:unreferenced", 0, -1)]


def age(bench: Bench) -> None:
    """A day goes by for what is on its way."""
    for path in on_their_way(bench):
        bench.redis.zincrby("celerity:unreferenced", -86_401.0, path)


def test_a_refused_request_is_told_so_though_its_object_cannot_be_deleted(
    bench: Bench, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = bench.running_session()
    for _ in range(settings.max_waiting_operations):
        bench.store.operations.accept(session.id, OperationKind.SAMPLE, request(SMALL))
    with monkeypatch.context() as outage:
        outage.setattr(bench.objects, "delete", away)
        with pytest.raises(TooManyWaitingError):
            bench.store.operations.accept(session.id, OperationKind.SAMPLE, request(LARGE))
        age(bench)
        bench.store.janitor.sweep()
        assert len(objects(settings)) == 1
    bench.store.janitor.sweep()
    assert objects(settings) == []


def test_a_copy_of_a_refused_call_that_comes_late_is_refused_too(
    bench: Bench, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first was sent again over another connection, whose answer the client has got; its object is gone."""
    session, scripts = bench.running_session(), bench.store._context.scripts._scripts
    ids = [
        bench.store.operations.accept(session.id, OperationKind.SAMPLE, request(SMALL)).id
        for _ in range(settings.max_waiting_operations)
    ]
    accept, sent = scripts["accept"], Mock(wraps=scripts["accept"])
    with monkeypatch.context() as patch:
        patch.setitem(scripts, "accept", sent)
        with pytest.raises(TooManyWaitingError):
            bench.store.operations.accept(session.id, OperationKind.SAMPLE, request(LARGE))
    bench.run(ids[0])
    assert accept(**sent.call_args.kwargs) == [b"full"]
    assert objects(settings) == []


def away(_: str) -> None:
    raise ObjectsAwayError


def test_a_sweep_does_not_ask_storage_that_is_away_for_each_of_a_thousand_objects(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.redis.sadd("celerity:garbage", *(f"requests/{number}" for number in range(100)))
    asked: list[str] = []

    def ask(path: str) -> None:
        asked.append(path)
        raise ObjectsAwayError

    monkeypatch.setattr(bench.objects, "delete", ask)
    bench.store.janitor.sweep()
    assert len(asked) == 10
    assert bench.redis.scard("celerity:garbage") == 100


def test_a_result_that_expires_while_it_is_read_is_not_found_and_a_lost_one_is_missing(
    bench: Bench, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = bench.running_session()
    operation = bench.store.operations.accept(session.id, OperationKind.SAMPLE, request(SMALL))
    bench.run(operation.id, result(LARGE))
    ended = bench.store.operations.get(session.id, operation.id)
    (kept,), get = objects(settings), bench.objects.get
    bench.objects.put("another", b"1")
    kept.unlink()
    with pytest.raises(ObjectMissingError):
        bench.store.operations.answer(ended, SampleResult)

    def expires(path: str) -> bytes:
        bench.redis.hdel(f"celerity:operation:{operation.id}", "result")
        return get(path)

    monkeypatch.setattr(bench.objects, "get", expires)
    with pytest.raises(NotFoundError, match="the result of this operation is no longer kept"):
        bench.store.operations.answer(ended, SampleResult)


def test_a_cancelled_request_leaves_no_object(bench: Bench, settings: Settings) -> None:
    session = bench.running_session()
    operation = bench.store.operations.accept(session.id, OperationKind.SAMPLE, request(LARGE))
    bench.store.operations.cancel(session.id, operation.id)
    bench.store.janitor.delete_garbage()
    assert objects(settings) == []
