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
from tests.workers.worker_harness import WorkerHarness
from workers.engine.loading import model_loader

TRAIN, STEP, SAMPLE = OperationKind.FORWARD_BACKWARD, OperationKind.OPTIM_STEP, OperationKind.SAMPLE
SAVE = OperationKind.INFERENCE_CHECKPOINT
BATCH = packed([random_sample(1, 6), random_sample(2, 6)])
SHORT = 0.2
# Enough for what a tiny model does in it, on a busy machine too.
AMPLE = 5.0


def run(
    harness: WorkerHarness, session: Session, kind: OperationKind, request: Any, seconds: float | None = None
) -> Operation:
    operation = harness.store.operations.accept(session.id, kind, request, timeout_seconds=seconds)
    harness.deliver()
    return harness.store.operations.get(session.id, operation.id)


def await_idle(harness: WorkerHarness) -> None:
    """Returns when the engine has nothing to do."""
    eventually(lambda: not harness.worker.engine._core.is_busy)


def deliver_past(harness: WorkerHarness, gate: Gate, seconds: float) -> None:
    """Runs the next operation, held at the gate until so much time has gone."""
    running = threading.Thread(target=harness.deliver)
    running.start()
    gate.wait()
    running.join(seconds)
    gate.open()
    running.join()


def code_of(operation: Operation) -> ErrorCode | None:
    return operation.error.code if operation.error else None


def train_and_step(harness: WorkerHarness, session: Session) -> None:
    assert run(harness, session, TRAIN, BATCH).status is OperationStatus.COMPLETED
    assert run(harness, session, STEP, OptimStepRequest(learning_rate=0.05)).status is OperationStatus.COMPLETED


@pytest.mark.parametrize("micro_batch", [1, 2])
def test_a_forward_backward_fails_while_the_engine_is_stuck_in_it_and_is_never_added(
    begin: Begin, monkeypatch: pytest.MonkeyPatch, micro_batch: int
) -> None:
    harness = begin(micro_batch_tokens=6)
    session = harness.session()
    train_and_step(harness, session)
    before = harness.adapter(session)
    gate = Gate(monkeypatch, model_of(harness.worker.engine, session.id).base, "hidden", at=micro_batch)
    failed = run(harness, session, TRAIN, BATCH, SHORT)
    assert code_of(failed) is ErrorCode.TIMEOUT
    gate.open()
    assert code_of(run(harness, session, STEP, OptimStepRequest())) is ErrorCode.INVALID_INPUT, "nothing is accumulated"
    assert harness.adapter(session) == before
    train_and_step(harness, session)
    after = harness.adapter(session)
    harness.change()
    assert harness.adapter(session) == after, "the next worker comes to the same bits without it"
    assert harness.store.sessions.get(session.id).step == 2


def test_an_endless_sample_fails_and_the_next_one_is_served(begin: Begin) -> None:
    harness = begin()
    session = harness.session()
    asked = sample_request([[1, 2]], num_samples=4, max_tokens=1_000_000)
    assert code_of(run(harness, session, SAMPLE, asked, SHORT)) is ErrorCode.TIMEOUT
    assert harness.sample(session)
    await_idle(harness)


def test_scoring_and_sampling_end_together(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    harness = begin()
    session = harness.session()
    harness.sample(session)
    gate = Gate(monkeypatch, model_of(harness.worker.engine, session.id).base, "hidden", at=2)
    asked = msgspec.structs.replace(sample_request([[1, 2]], max_tokens=1_000_000), prompt_logprobs=True)
    assert code_of(run(harness, session, SAMPLE, asked, SHORT)) is ErrorCode.TIMEOUT
    gate.open()
    await_idle(harness)


def test_the_setting_holds_where_the_request_says_nothing(begin: Begin) -> None:
    harness = begin(sample_timeout=SHORT)
    session = harness.session()
    endless = run(harness, session, SAMPLE, sample_request([[1]], max_tokens=1_000_000))
    assert code_of(endless) is ErrorCode.TIMEOUT
    assert endless.error is not None and "0.2 s" in endless.error.message


def test_a_sample_fails_in_its_time_while_another_sessions_adapter_is_long_in_coming(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = begin()
    session = harness.session()
    harness.sample(session)
    gate = Gate(monkeypatch, harness.worker.engine, "create_adapter")
    creating = threading.Thread(target=created, args=(harness,))
    creating.start()
    gate.wait()
    operation = harness.store.operations.accept(session.id, SAMPLE, sample_request([[1]]), timeout_seconds=SHORT)
    sampling = threading.Thread(target=harness.deliver)
    sampling.start()
    sampling.join(20)
    ended = harness.store.operations.get(session.id, operation.id)
    gate.open()
    for thread in (sampling, creating):
        thread.join()
    assert code_of(ended) is ErrorCode.TIMEOUT
    assert harness.sample(session), "the next one is served"


def test_a_session_that_does_not_come_back_in_time_is_no_matter_of_the_samples_limit(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = begin()
    session = harness.session()
    harness.end()
    harness._settings = msgspec.structs.replace(harness._settings, create_session_timeout=SHORT)
    harness.worker = harness._begin()
    harness.store.janitor.move_sessions_of(harness.store.workers.left())
    gate = Gate(monkeypatch, model_loader, "BaseModel")
    failed = run(harness, session, SAMPLE, sample_request([[1]]))
    gate.open()
    assert code_of(failed) is ErrorCode.TIMEOUT
    assert failed.error is not None and "CELERITY_CREATE_SESSION_TIMEOUT" in failed.error.message
    assert "timeout_seconds" not in failed.error.message


def test_a_step_that_the_engine_has_no_time_for_is_not_taken(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    harness = begin()
    session, other = harness.session(), harness.session()
    assert run(harness, session, TRAIN, BATCH).error is None
    harness.adapter(other)
    gate = Gate(monkeypatch, model_of(harness.worker.engine, other.id).base, "hidden")
    training = harness.worker.engine.forward_backward(other.id, BATCH, 0)
    gate.wait()
    assert code_of(run(harness, session, STEP, OptimStepRequest(), SHORT)) is ErrorCode.TIMEOUT
    gate.open()
    training.result()
    assert harness.store.sessions.get(session.id).step == 0
    assert run(harness, session, STEP, OptimStepRequest()).error is None, "its gradient is still there"
    assert harness.store.sessions.get(session.id).step == 1


def test_a_checkpoint_that_is_not_written_in_time_does_not_exist(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    harness = begin()
    session = harness.session()
    objects = harness.store._objects
    gate = Gate(monkeypatch, objects, "put", at=2)
    operation = harness.store.operations.accept(session.id, SAVE, CheckpointRequest(), timeout_seconds=AMPLE)
    deliver_past(harness, gate, AMPLE + 0.2)
    assert code_of(harness.store.operations.get(session.id, operation.id)) is ErrorCode.TIMEOUT
    assert harness.store.checkpoints.list(ANONYMOUS, 20, 0) == []
    for _ in range(2):
        harness.store.janitor.sweep()
    assert not list(objects.file("checkpoints").glob("*/*/*/*"))  # type: ignore[union-attr]
    assert run(harness, session, SAVE, CheckpointRequest()).error is None


def created(harness: WorkerHarness, seconds: float | None = None) -> Session:
    spec = SessionSpec(base_model=harness.card, lora=LoraConfig(), seed=3)
    session = harness.store.sessions.create(spec, [harness.worker.worker_id], timeout_seconds=seconds)
    harness.deliver()
    return harness.store.sessions.get(session.id)


@pytest.mark.parametrize("slow", ["fetching", "loading"])
def test_a_session_whose_model_is_long_in_coming_ends_with_that_reason_and_the_next_one_gets_it(
    begin: Begin, monkeypatch: pytest.MonkeyPatch, slow: str
) -> None:
    harness = begin(create_session_timeout=SHORT)
    place: tuple[object, str] = (
        (model_loader, "BaseModel") if slow == "loading" else (harness.worker.catalog, "directory")
    )
    gate = Gate(monkeypatch, *place)
    for seconds in (SHORT / 2, None):
        session = created(harness, seconds)
        assert session.status is SessionStatus.ERROR
        assert session.reason is not None and f"within {seconds or SHORT:g} s" in session.reason
    gate.open()
    harness.worker.engine.drop_adapter("nobody").result()
    assert harness.worker.residency.count == 0
    assert not harness.worker.engine._core._cached
    assert created(harness, 60).status is SessionStatus.RUNNING


def test_what_is_replayed_has_no_limit_and_takes_nothing_of_the_operations_own(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = begin()
    session = harness.session()
    train_and_step(harness, session)
    before = harness.adapter(session)
    harness._settings = msgspec.structs.replace(
        harness._settings, forward_backward_timeout=0.001, optim_step_timeout=0.001
    )
    harness.end()
    harness.worker = harness._begin()
    gate = Gate(monkeypatch, harness.worker.engine, "optim_step")
    harness.store.janitor.move_sessions_of(harness.store.workers.left())
    operation = harness.store.operations.accept(
        session.id, SAMPLE, sample_request([[1]], max_tokens=2), timeout_seconds=AMPLE
    )
    deliver_past(harness, gate, AMPLE + 0.2)
    assert harness.store.operations.get(session.id, operation.id).status is OperationStatus.COMPLETED
    assert harness.adapter(session) == before
