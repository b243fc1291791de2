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
from tests.workers.shift import Shift
from workers.engine.adapters.state import AdapterState

TRAIN, STEP = OperationKind.FORWARD_BACKWARD, OperationKind.OPTIM_STEP


def train(shift: Shift, session: Session, seed: int) -> None:
    assert shift.run(session, TRAIN, packed([random_sample(seed, 6)])).error is None


def train_and_step(shift: Shift, session: Session, seed: int, learning_rate: float = 0.05) -> None:
    train(shift, session, seed)
    assert shift.run(session, STEP, OptimStepRequest(learning_rate=learning_rate)).error is None


def publish(shift: Shift, session: Session) -> None:
    assert shift.run(session, OperationKind.WEIGHTS_SYNC, WeightsSyncRequest()).status is OperationStatus.COMPLETED


@pytest.mark.parametrize(("snapshot_steps", "saved_step", "replayed"), [(100, None, [1, 2, 3, 4, 5]), (2, 2, [5])])
def test_it_is_the_same_to_the_last_bit_from_a_snapshot_or_from_nothing(
    begin: Begin, snapshot_steps: int, saved_step: int | None, replayed: list[int]
) -> None:
    shift = begin(snapshot_steps=snapshot_steps)
    session = shift.session()
    for seed in range(2):
        train_and_step(shift, session, seed)
    train(shift, session, 2)
    before = shift.adapter(session)
    for _ in range(2):
        shift.change()
        kept = shift.store.snapshots.load(session.id)
        assert [operation.seq for operation in kept.replayed] == replayed
        assert (AdapterState.from_bytes(kept.snapshot).step if kept.snapshot else None) == saved_step
        assert shift.worker.residency.count == 0
        assert shift.adapter(session) == before
    train_and_step(shift, session, 3)
    assert shift.store.sessions.get(session.id).step == 3


def test_a_call_keeps_the_horizon_that_was_set_when_it_was_accepted(begin: Begin) -> None:
    shift = begin(horizon=1024)
    session = shift.session()
    arrays = {"advantages": [[1.0] * 6], "generator_logprobs": [[-2.0] * 6]}
    operation = shift.run(session, TRAIN, packed([random_sample(0, 6)], Grpo(), horizon=5, **arrays))
    assert shift.store.operations.result(operation, ForwardBackwardResult).metrics["loss/horizon"] == 5.0
    before = shift.adapter(session)
    shift.change(horizon=9)
    assert shift.adapter(session) == before


def test_a_step_that_was_not_finite_clears_the_gradients_again(begin: Begin) -> None:
    shift = begin()
    session = shift.session()
    train(shift, session, 0)
    failed = shift.run(session, STEP, OptimStepRequest(learning_rate=1e39))
    assert failed.error is not None and failed.error.code is ErrorCode.NON_FINITE
    before = shift.adapter(session)
    shift.change()
    assert shift.adapter(session) == before
    failed = shift.run(session, STEP, OptimStepRequest())
    assert failed.error is not None and failed.error.code is ErrorCode.INVALID_INPUT, "nothing is accumulated"


def test_samples_use_the_weights_that_were_published_last(begin: Begin) -> None:
    shift = begin()
    session = shift.session(publishes=True)
    train_and_step(shift, session, 0, learning_rate=1.0)
    publish(shift, session)
    train_and_step(shift, session, 1, learning_rate=1.0)
    published, current = shift.sample(session), shift.adapter(session)
    shift.change()
    assert shift.sample(session) == published
    assert shift.adapter(session) == current
    publish(shift, session)
    assert shift.sample(session) != published


def test_a_session_that_took_only_the_weights_of_a_checkpoint_begins_with_those_each_time(begin: Begin) -> None:
    shift = begin()
    first = shift.session()
    train_and_step(shift, first, 0)
    saved = shift.run(first, OperationKind.TRAINING_CHECKPOINT, CheckpointRequest())
    checkpoint = shift.store.checkpoints.get(saved.id, first.owner)
    again = shift.session(checkpoint=checkpoint, load_optimizer=False)
    for _ in range(2):
        of_first, state = (AdapterState.from_bytes(shift.adapter(each)) for each in (first, again))
        assert state.weights.equal(of_first.weights)
        assert (of_first.step, state.step) == (1, 0)
        assert of_first.exp_avg.any() and not state.exp_avg.any() and not state.exp_avg_sq.any()
        shift.change()


def test_what_was_restored_half_way_only_is_restored_again(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    shift = begin()
    session = shift.session()
    train_and_step(shift, session, 0)
    before = shift.adapter(session)
    shift.change()
    with monkeypatch.context() as fault:
        fault.setattr(shift.worker.engine, "optim_step", lambda *_: 1 / 0)
        failed = shift.run(session, OperationKind.SAMPLE, sample_request([[1]]))
    assert failed.error is not None and failed.error.code is ErrorCode.INTERNAL_ERROR
    assert shift.adapter(session) == before


def test_sessions_that_take_turns_in_memory_come_back_as_they_were(begin: Begin) -> None:
    shift = begin(resident_sessions=1)
    sessions = [shift.session() for _ in range(2)]
    before = {}
    for seed, session in enumerate(sessions * 2):
        train_and_step(shift, session, seed)
        train(shift, session, seed)
        before[session.id] = shift.adapter(session)
        assert shift.worker.residency.count == 1
    for session in sessions:
        assert shift.adapter(session) == before[session.id]
