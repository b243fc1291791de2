"""The next worker makes of a session what the last one had: its snapshot, then the operations after it again."""

import pytest

from domain.checkpoint import CheckpointRequest
from domain.forward_backward import ForwardBackwardResult, Grpo
from domain.operation import ErrorCode, OperationKind, OperationStatus
from domain.optim_step import OptimStepRequest
from domain.session import Session
from domain.weights_sync import WeightsSyncRequest
from tests.engine.calls import packed, random_sample, sample_request
from tests.workers.conftest import Begin
from tests.workers.worker_harness import WorkerHarness
from workers.engine.adapters.state import AdapterState

TRAIN, STEP = OperationKind.FORWARD_BACKWARD, OperationKind.OPTIM_STEP


def train(harness: WorkerHarness, session: Session, seed: int) -> None:
    assert harness.run(session, TRAIN, packed([random_sample(seed, 6)])).error is None


def train_and_step(harness: WorkerHarness, session: Session, seed: int, learning_rate: float = 0.05) -> None:
    train(harness, session, seed)
    assert harness.run(session, STEP, OptimStepRequest(learning_rate=learning_rate)).error is None


def publish(harness: WorkerHarness, session: Session) -> None:
    assert harness.run(session, OperationKind.WEIGHTS_SYNC, WeightsSyncRequest()).status is OperationStatus.COMPLETED


@pytest.mark.parametrize(("snapshot_steps", "saved_step", "replayed"), [(100, None, [1, 2, 3, 4, 5]), (2, 2, [5])])
def test_it_is_the_same_to_the_last_bit_from_a_snapshot_or_from_nothing(
    begin: Begin, snapshot_steps: int, saved_step: int | None, replayed: list[int]
) -> None:
    harness = begin(snapshot_steps=snapshot_steps)
    session = harness.session()
    for seed in range(2):
        train_and_step(harness, session, seed)
    train(harness, session, 2)
    before = harness.adapter(session)
    for _ in range(2):
        harness.change()
        kept = harness.store.snapshots.load(session.id)
        assert [operation.seq for operation in kept.replayed] == replayed
        assert (AdapterState.from_bytes(kept.snapshot).step if kept.snapshot else None) == saved_step
        assert harness.worker.residency.count == 0
        assert harness.adapter(session) == before
    train_and_step(harness, session, 3)
    assert harness.store.sessions.get(session.id).step == 3


def test_a_call_keeps_the_horizon_that_was_set_when_it_was_accepted(begin: Begin) -> None:
    harness = begin(horizon=1024)
    session = harness.session()
    arrays = {"advantages": [[1.0] * 6], "generator_logprobs": [[-2.0] * 6]}
    operation = harness.run(session, TRAIN, packed([random_sample(0, 6)], Grpo(), horizon=5, **arrays))
    assert harness.store.operations.result(operation, ForwardBackwardResult).metrics["loss/horizon"] == 5.0
    before = harness.adapter(session)
    harness.change(horizon=9)
    assert harness.adapter(session) == before


def test_a_step_that_was_not_finite_clears_the_gradients_again(begin: Begin) -> None:
    harness = begin()
    session = harness.session()
    train(harness, session, 0)
    failed = harness.run(session, STEP, OptimStepRequest(learning_rate=1e39))
    assert failed.error is not None and failed.error.code is ErrorCode.NON_FINITE
    before = harness.adapter(session)
    harness.change()
    assert harness.adapter(session) == before
    failed = harness.run(session, STEP, OptimStepRequest())
    assert failed.error is not None and failed.error.code is ErrorCode.INVALID_INPUT, "nothing is accumulated"


def test_samples_use_the_weights_that_were_published_last(begin: Begin) -> None:
    harness = begin()
    session = harness.session(publishes=True)
    train_and_step(harness, session, 0, learning_rate=1.0)
    publish(harness, session)
    train_and_step(harness, session, 1, learning_rate=1.0)
    published, current = harness.sample(session), harness.adapter(session)
    harness.change()
    assert harness.sample(session) == published
    assert harness.adapter(session) == current
    publish(harness, session)
    assert harness.sample(session) != published


def test_a_session_that_took_only_the_weights_of_a_checkpoint_begins_with_those_each_time(begin: Begin) -> None:
    harness = begin()
    first = harness.session()
    train_and_step(harness, first, 0)
    saved = harness.run(first, OperationKind.TRAINING_CHECKPOINT, CheckpointRequest())
    checkpoint = harness.store.checkpoints.get(saved.id, first.owner)
    again = harness.session(checkpoint=checkpoint, load_optimizer=False)
    for _ in range(2):
        of_first, state = (AdapterState.from_bytes(harness.adapter(each)) for each in (first, again))
        assert state.weights.equal(of_first.weights)
        assert (of_first.step, state.step) == (1, 0)
        assert of_first.exp_avg.any() and not state.exp_avg.any() and not state.exp_avg_sq.any()
        harness.change()


def test_what_was_restored_half_way_only_is_restored_again(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    harness = begin()
    session = harness.session()
    train_and_step(harness, session, 0)
    before = harness.adapter(session)
    harness.change()
    with monkeypatch.context() as fault:
        fault.setattr(harness.worker.engine, "optim_step", lambda *_: 1 / 0)
        failed = harness.run(session, OperationKind.SAMPLE, sample_request([[1]]))
    assert failed.error is not None and failed.error.code is ErrorCode.INTERNAL_ERROR
    assert harness.adapter(session) == before


def test_sessions_that_take_turns_in_memory_come_back_as_they_were(begin: Begin) -> None:
    harness = begin(resident_sessions=1)
    sessions = [harness.session() for _ in range(2)]
    before = {}
    for seed, session in enumerate(sessions * 2):
        train_and_step(harness, session, seed)
        train(harness, session, seed)
        before[session.id] = harness.adapter(session)
        assert harness.worker.residency.count == 1
    for session in sessions:
        assert harness.adapter(session) == before[session.id]
