"""Operations that take too long, in a real worker: they end FAILED with TIMEOUT, as if they had never been."""

import threading
from typing import Any

import msgspec
import pytest

from domain.api_key import ANONYMOUS
from domain.checkpoint import CheckpointRequest
from domain.operation import ErrorCode, Operation, OperationKind, OperationStatus
from domain.optim_step import OptimStepRequest
from domain.session import LoraConfig, Session, SessionSpec, SessionStatus
from tests.engine.calls import model_of, packed, random_sample, sample_request
from tests.gate import Gate
from tests.waiting import eventually
from tests.workers.conftest import Begin
from tests.workers.shift import Shift
from workers.engine.loading import model_loader

TRAIN, STEP, SAMPLE = OperationKind.FORWARD_BACKWARD, OperationKind.OPTIM_STEP, OperationKind.SAMPLE
SAVE = OperationKind.INFERENCE_CHECKPOINT
BATCH = packed([random_sample(1, 6), random_sample(2, 6)])
SHORT = 0.2
# Enough for what a tiny model does in it, on a busy machine too.
AMPLE = 5.0


def run(shift: Shift, session: Session, kind: OperationKind, request: Any, seconds: float | None = None) -> Operation:
    operation = shift.store.operations.accept(session.id, kind, request, timeout_seconds=seconds)
    shift.deliver()
    return shift.store.operations.get(session.id, operation.id)


def await_idle(shift: Shift) -> None:
    """Returns when the engine has nothing to do."""
    eventually(lambda: not shift.worker.engine._core.is_busy)


def deliver_past(shift: Shift, gate: Gate, seconds: float) -> None:
    """Runs the next operation, held at the gate until so much time has gone."""
    running = threading.Thread(target=shift.deliver)
    running.start()
    gate.wait()
    running.join(seconds)
    gate.open()
    running.join()


def code_of(operation: Operation) -> ErrorCode | None:
    return operation.error.code if operation.error else None


def train_and_step(shift: Shift, session: Session) -> None:
    assert run(shift, session, TRAIN, BATCH).status is OperationStatus.COMPLETED
    assert run(shift, session, STEP, OptimStepRequest(learning_rate=0.05)).status is OperationStatus.COMPLETED


@pytest.mark.parametrize("micro_batch", [1, 2])
def test_a_forward_backward_fails_while_the_engine_is_stuck_in_it_and_is_never_added(
    begin: Begin, monkeypatch: pytest.MonkeyPatch, micro_batch: int
) -> None:
    shift = begin(micro_batch_tokens=6)
    session = shift.session()
    train_and_step(shift, session)
    before = shift.adapter(session)
    gate = Gate(monkeypatch, model_of(shift.worker.engine, session.id).base, "hidden", at=micro_batch)
    failed = run(shift, session, TRAIN, BATCH, SHORT)
    assert code_of(failed) is ErrorCode.TIMEOUT
    gate.open()
    assert code_of(run(shift, session, STEP, OptimStepRequest())) is ErrorCode.INVALID_INPUT, "nothing is accumulated"
    assert shift.adapter(session) == before
    train_and_step(shift, session)
    after = shift.adapter(session)
    shift.change()
    assert shift.adapter(session) == after, "the next worker comes to the same bits without it"
    assert shift.store.sessions.get(session.id).step == 2


def test_an_endless_sample_fails_and_the_next_one_is_served(begin: Begin) -> None:
    shift = begin()
    session = shift.session()
    asked = sample_request([[1, 2]], num_samples=4, max_tokens=1_000_000)
    assert code_of(run(shift, session, SAMPLE, asked, SHORT)) is ErrorCode.TIMEOUT
    assert shift.sample(session)
    await_idle(shift)


def test_scoring_and_sampling_end_together(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    shift = begin()
    session = shift.session()
    shift.sample(session)
    gate = Gate(monkeypatch, model_of(shift.worker.engine, session.id).base, "hidden", at=2)
    asked = msgspec.structs.replace(sample_request([[1, 2]], max_tokens=1_000_000), prompt_logprobs=True)
    assert code_of(run(shift, session, SAMPLE, asked, SHORT)) is ErrorCode.TIMEOUT
    gate.open()
    await_idle(shift)


def test_the_setting_holds_where_the_request_says_nothing(begin: Begin) -> None:
    shift = begin(sample_timeout=SHORT)
    session = shift.session()
    endless = run(shift, session, SAMPLE, sample_request([[1]], max_tokens=1_000_000))
    assert code_of(endless) is ErrorCode.TIMEOUT
    assert endless.error is not None and "0.2 s" in endless.error.message


def test_a_sample_fails_in_its_time_while_another_sessions_adapter_is_long_in_coming(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    shift = begin()
    session = shift.session()
    shift.sample(session)
    gate = Gate(monkeypatch, shift.worker.engine, "create_adapter")
    creating = threading.Thread(target=created, args=(shift,))
    creating.start()
    gate.wait()
    operation = shift.store.operations.accept(session.id, SAMPLE, sample_request([[1]]), timeout_seconds=SHORT)
    sampling = threading.Thread(target=shift.deliver)
    sampling.start()
    sampling.join(20)
    ended = shift.store.operations.get(session.id, operation.id)
    gate.open()
    for thread in (sampling, creating):
        thread.join()
    assert code_of(ended) is ErrorCode.TIMEOUT
    assert shift.sample(session), "the next one is served"


def test_a_session_that_does_not_come_back_in_time_is_no_matter_of_the_samples_limit(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    shift = begin()
    session = shift.session()
    shift.end()
    shift._settings = msgspec.structs.replace(shift._settings, create_session_timeout=SHORT)
    shift.worker = shift._begin()
    shift.store.janitor.move_sessions_of(shift.store.workers.left())
    gate = Gate(monkeypatch, model_loader, "BaseModel")
    failed = run(shift, session, SAMPLE, sample_request([[1]]))
    gate.open()
    assert code_of(failed) is ErrorCode.TIMEOUT
    assert failed.error is not None and "CELERITY_CREATE_SESSION_TIMEOUT" in failed.error.message
    assert "timeout_seconds" not in failed.error.message


def test_a_step_that_the_engine_has_no_time_for_is_not_taken(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    shift = begin()
    session, other = shift.session(), shift.session()
    assert run(shift, session, TRAIN, BATCH).error is None
    shift.adapter(other)
    gate = Gate(monkeypatch, model_of(shift.worker.engine, other.id).base, "hidden")
    training = shift.worker.engine.forward_backward(other.id, BATCH, 0)
    gate.wait()
    assert code_of(run(shift, session, STEP, OptimStepRequest(), SHORT)) is ErrorCode.TIMEOUT
    gate.open()
    training.result()
    assert shift.store.sessions.get(session.id).step == 0
    assert run(shift, session, STEP, OptimStepRequest()).error is None, "its gradient is still there"
    assert shift.store.sessions.get(session.id).step == 1


def test_a_checkpoint_that_is_not_written_in_time_does_not_exist(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    shift = begin()
    session = shift.session()
    objects = shift.store._objects
    gate = Gate(monkeypatch, objects, "put", at=2)
    operation = shift.store.operations.accept(session.id, SAVE, CheckpointRequest(), timeout_seconds=AMPLE)
    deliver_past(shift, gate, AMPLE + 0.2)
    assert code_of(shift.store.operations.get(session.id, operation.id)) is ErrorCode.TIMEOUT
    assert shift.store.checkpoints.list(ANONYMOUS, 20, 0) == []
    for _ in range(2):
        shift.store.janitor.sweep()
    assert not list(objects.file("checkpoints").glob("*/*/*/*"))  # type: ignore[union-attr]
    assert run(shift, session, SAVE, CheckpointRequest()).error is None


def created(shift: Shift, seconds: float | None = None) -> Session:
    spec = SessionSpec(base_model=shift.card, lora=LoraConfig(), seed=3)
    session = shift.store.sessions.create(spec, [shift.worker.worker_id], timeout_seconds=seconds)
    shift.deliver()
    return shift.store.sessions.get(session.id)


@pytest.mark.parametrize("slow", ["fetching", "loading"])
def test_a_session_whose_model_is_long_in_coming_ends_with_that_reason_and_the_next_one_gets_it(
    begin: Begin, monkeypatch: pytest.MonkeyPatch, slow: str
) -> None:
    shift = begin(create_session_timeout=SHORT)
    place: tuple[object, str] = (
        (model_loader, "BaseModel") if slow == "loading" else (shift.worker.catalog, "directory")
    )
    gate = Gate(monkeypatch, *place)
    for seconds in (SHORT / 2, None):
        session = created(shift, seconds)
        assert session.status is SessionStatus.ERROR
        assert session.reason is not None and f"within {seconds or SHORT:g} s" in session.reason
    gate.open()
    shift.worker.engine.drop_adapter("nobody").result()
    assert shift.worker.residency.count == 0
    assert not shift.worker.engine._core._cached
    assert created(shift, 60).status is SessionStatus.RUNNING


def test_what_is_replayed_has_no_limit_and_takes_nothing_of_the_operations_own(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    shift = begin()
    session = shift.session()
    train_and_step(shift, session)
    before = shift.adapter(session)
    shift._settings = msgspec.structs.replace(shift._settings, forward_backward_timeout=0.001, optim_step_timeout=0.001)
    shift.end()
    shift.worker = shift._begin()
    gate = Gate(monkeypatch, shift.worker.engine, "optim_step")
    shift.store.janitor.move_sessions_of(shift.store.workers.left())
    operation = shift.store.operations.accept(
        session.id, SAMPLE, sample_request([[1]], max_tokens=2), timeout_seconds=AMPLE
    )
    deliver_past(shift, gate, AMPLE + 0.2)
    assert shift.store.operations.get(session.id, operation.id).status is OperationStatus.COMPLETED
    assert shift.adapter(session) == before
