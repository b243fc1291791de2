"""FAILED changes nothing, whatever failed and when: neither in memory nor in what the next worker makes of it."""

from collections.abc import Callable
from typing import Any

import pytest
from celery.app.trace import build_tracer
from msgspec.structs import replace
from redis.exceptions import ResponseError

from domain.kinds import KINDS
from domain.operation import ErrorCode, OperationKind, OperationStatus
from domain.optim_step import OptimStepRequest
from domain.session import Session
from domain.weights_sync import WeightsSyncRequest
from store.errors import ObjectsAwayError
from tests.engine.calls import packed, random_sample
from tests.workers.conftest import Begin
from tests.workers.worker_harness import WorkerHarness
from workers.celery_app import app
from workers.engine.adapters.adapter import Adapter

TRAIN, STEP, SYNC = OperationKind.FORWARD_BACKWARD, OperationKind.OPTIM_STEP, OperationKind.WEIGHTS_SYNC
REQUESTS = {
    TRAIN: packed([random_sample(7, 6)]),
    STEP: OptimStepRequest(learning_rate=0.05),
    SYNC: WeightsSyncRequest(),
}

Fault = Callable[[pytest.MonkeyPatch, WorkerHarness], None]


def fails(*_: Any, **__: Any) -> Any:
    raise ZeroDivisionError


def storage_stays_away(patch: pytest.MonkeyPatch, harness: WorkerHarness) -> None:
    def away(*_: Any) -> Any:
        raise ObjectsAwayError("the disk is read-only")

    patch.setattr(harness.store.claims, "store_result", away)
    patch.setattr(harness.worker.retry, "_limit", 0.0)


def its_result_cannot_be_encoded(patch: pytest.MonkeyPatch, _: WorkerHarness) -> None:
    patch.setattr("store.claims.encode", fails)


def its_metrics_cannot_be_told(patch: pytest.MonkeyPatch, _: WorkerHarness) -> None:
    for kind in (TRAIN, STEP):
        patch.setitem(KINDS, kind, replace(KINDS[kind], metrics=fails))


def its_snapshot_fails(patch: pytest.MonkeyPatch, harness: WorkerHarness) -> None:
    patch.setattr(harness.worker.snapshots, "after_step", fails)


def the_engine_fails_half_way(patch: pytest.MonkeyPatch, _: WorkerHarness) -> None:
    """After the gradients were added, or the weights changed; out of memory, which elsewhere changes nothing."""
    accumulate = Adapter.accumulate

    def add_and_fail(adapter: Adapter, *gradients: Any) -> None:
        accumulate(adapter, *gradients)
        raise MemoryError

    def fail(_: Adapter) -> None:
        raise MemoryError

    patch.setattr(Adapter, "accumulate", add_and_fail)
    patch.setattr(Adapter, "clear_gradients", fail)


def trained(harness: WorkerHarness, session: Session, seed: int) -> None:
    for kind, request in ((TRAIN, packed([random_sample(seed, 6)])), (STEP, REQUESTS[STEP])):
        assert harness.run(session, kind, request).status is OperationStatus.COMPLETED


@pytest.mark.parametrize(
    ("kind", "fault", "code"),
    [
        (TRAIN, storage_stays_away, ErrorCode.INTERNAL_ERROR),
        (TRAIN, its_result_cannot_be_encoded, ErrorCode.INTERNAL_ERROR),
        (TRAIN, its_metrics_cannot_be_told, ErrorCode.INTERNAL_ERROR),
        (TRAIN, the_engine_fails_half_way, ErrorCode.RESOURCE_EXHAUSTED),
        (STEP, storage_stays_away, ErrorCode.INTERNAL_ERROR),
        (STEP, its_metrics_cannot_be_told, ErrorCode.INTERNAL_ERROR),
        (STEP, its_snapshot_fails, ErrorCode.INTERNAL_ERROR),
        (STEP, the_engine_fails_half_way, ErrorCode.RESOURCE_EXHAUSTED),
        (SYNC, storage_stays_away, ErrorCode.INTERNAL_ERROR),
        (SYNC, its_result_cannot_be_encoded, ErrorCode.INTERNAL_ERROR),
    ],
)
def test_what_fails_after_the_engine_has_done_it_is_undone(
    begin: Begin, monkeypatch: pytest.MonkeyPatch, kind: OperationKind, fault: Fault, code: ErrorCode
) -> None:
    harness = begin(snapshot_steps=100)
    session = harness.session(publishes=True)
    trained(harness, session, 0)
    harness.run(session, TRAIN, packed([random_sample(1, 6)]))
    before = harness.adapter(session)
    with monkeypatch.context() as patch:
        fault(patch, harness)
        failed = harness.run(session, kind, REQUESTS[kind])
    assert failed.error is not None and failed.error.code is code
    assert harness.adapter(session) == before
    assert harness.store.sessions.get(session.id).step == 1
    trained(harness, session, 2)
    after = harness.adapter(session)
    harness.change()
    assert harness.adapter(session) == after


def test_what_fails_before_the_engine_has_done_anything_leaves_the_adapter_where_it_is(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = begin()
    session = harness.session()
    before = harness.adapter(session)
    monkeypatch.setattr(harness.store.snapshots, "load", fails)
    for kind, request, code in (
        (STEP, OptimStepRequest(), ErrorCode.INVALID_INPUT),
        (TRAIN, packed([([1, 10_000], [2, 3])]), ErrorCode.INVALID_INPUT),
    ):
        failed = harness.run(session, kind, request)
        assert failed.error is not None and failed.error.code is code
    assert harness.adapter(session) == before


def test_when_nobody_knows_whether_it_has_ended_it_is_begun_again(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = begin()
    session, undisturbed = harness.session(), harness.session()
    with monkeypatch.context() as patch:
        patch.setattr(harness.store.claims, "finish", lambda *_: fails_in_redis())
        operation = harness.store.operations.accept(session.id, TRAIN, REQUESTS[TRAIN])
        task = app.tasks[TRAIN.task_name]
        # As the worker runs it: Celery takes what the result backend raises for the task's failure.
        build_tracer(task.name, task, app=app)(operation.id, (), {}, {"id": operation.id})
    assert harness.store.operations.get(session.id, operation.id).status is OperationStatus.RUNNING
    for _ in range(2):
        harness.worker.lost_operations.sweep()
    harness.deliver()
    harness.run(undisturbed, TRAIN, REQUESTS[TRAIN])
    assert harness.store.operations.get(session.id, operation.id).status is OperationStatus.COMPLETED
    assert harness.adapter(session) == harness.adapter(undisturbed)
    assert harness.worker.lost_operations.running == set()


def fails_in_redis() -> bool:
    raise ResponseError("WRONGTYPE")
