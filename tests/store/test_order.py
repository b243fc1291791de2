"""Operations of one session take effect in the order they were accepted."""

import pytest

from domain.operation import ErrorCode, OperationError, OperationKind, OperationStatus
from domain.optim_step import OptimStepRequest, OptimStepResult
from store.errors import TooManyWaitingError
from tests.store.conftest import SPEC, WORKER, Bench

SAMPLE, TRAIN, STEP = OperationKind.SAMPLE, OperationKind.FORWARD_BACKWARD, OperationKind.OPTIM_STEP


def accept(bench: Bench, session_id: str, *kinds: OperationKind) -> list[str]:
    return [bench.store.operations.accept(session_id, kind, OptimStepRequest()).id for kind in kinds]


def test_what_changes_weights_runs_alone_and_samples_between_run_together(bench: Bench) -> None:
    session = bench.running_session()
    train, step, one, two, last = accept(bench, session.id, TRAIN, STEP, SAMPLE, SAMPLE, TRAIN)
    assert bench.outbox.take() == [train]
    bench.run(train)
    assert bench.outbox.take() == [step]
    bench.run(step, OptimStepResult(step=1, metrics={}))
    assert bench.outbox.take() == [one, two]
    bench.run(two)
    assert bench.outbox.take() == []
    bench.run(one)
    assert bench.outbox.take() == [last]


def test_a_sample_joins_the_samples_that_are_running(bench: Bench) -> None:
    session = bench.running_session()
    first = accept(bench, session.id, SAMPLE)
    bench.claim(first[0])
    second = accept(bench, session.id, SAMPLE)
    assert bench.outbox.take() == first + second


def test_only_so_many_samples_of_a_session_are_with_its_worker_at_once(bench: Bench) -> None:
    session = bench.running_session()
    samples = accept(bench, session.id, *[SAMPLE] * 5)
    assert bench.outbox.take() == samples[:3]
    bench.run(samples[1])
    assert bench.outbox.take() == [samples[3]]


def test_operations_accepted_while_the_session_is_being_created_wait_for_it(bench: Bench) -> None:
    session = bench.store.sessions.create(SPEC, [WORKER])
    creation = bench.outbox.take()
    step = accept(bench, session.id, STEP)
    assert bench.outbox.take() == []
    bench.run(creation[0])
    assert bench.outbox.take() == step


def test_a_failed_operation_releases_the_next_and_leaves_the_step_alone(bench: Bench) -> None:
    session = bench.running_session()
    first, second = accept(bench, session.id, STEP, STEP)
    bench.outbox.take()
    bench.run(first, OperationError(ErrorCode.INVALID_INPUT, "nothing accumulated"))
    assert bench.outbox.take() == [second]
    failed = bench.store.operations.get(session.id, first)
    assert failed.status is OperationStatus.FAILED
    assert failed.error == OperationError(ErrorCode.INVALID_INPUT, "nothing accumulated")
    assert bench.store.sessions.get(session.id).step == 0


def test_sessions_do_not_wait_for_each_other(bench: Bench) -> None:
    one, two = bench.running_session(), bench.running_session()
    accept(bench, one.id, TRAIN, TRAIN)
    bench.outbox.take()
    assert bench.outbox.take() == []
    theirs = accept(bench, two.id, TRAIN)
    assert bench.outbox.take() == theirs


def test_a_full_session_queue_refuses_and_stores_nothing(bench: Bench) -> None:
    session = bench.running_session()
    accept(bench, session.id, *[STEP] * 5)
    keys = bench.redis.dbsize()
    with pytest.raises(TooManyWaitingError, match="5 operations"):
        accept(bench, session.id, STEP)
    assert bench.redis.dbsize() == keys
