"""What the judging of a trial notices: differences planted in a session that nobody disturbed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from domain.model import ModelCard
from domain.operation import ErrorCode, OperationKind
from domain.session import Dialect, LoraConfig, SessionSpec
from testing.tiny_model import make_tiny_model
from tests.chaos import comparison
from tests.chaos.api import Api, End
from tests.chaos.expected import Expected, run_undisturbed
from tests.chaos.native_api import NativeApi
from tests.chaos.plan import CHECKPOINTS, plan
from tests.chaos.retrying_client import RetryingClient
from tests.chaos.story import SessionRun
from tests.chaos.together_api import TogetherApi
from workers.engine.config import EngineConfig
from workers.engine.engine import Engine

CANCELLED, INACTIVE = End(None, ErrorCode.CANCELLED), End(None, ErrorCode.SESSION_NOT_ACTIVE)
CARD = ModelCard(name="tiny", vocab_size=266, context_length=512)
CLIENT = RetryingClient("http://127.0.0.1:9")
APIS: dict[Dialect, Api] = {Dialect.NATIVE: NativeApi(CLIENT), Dialect.TOGETHER: TogetherApi(CLIENT)}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    engine = Engine(EngineConfig(device="cpu", torch_threads=1, micro_batch_tokens=64))
    engine.start()
    yield engine
    engine.close()


def a_run(dialect: Dialect) -> SessionRun:
    """Of all operations of a plan, none of which has been told to have ended."""
    sessions = plan(seed=3, length=24)
    chosen = next(session for session in sessions if session.dialect is dialect)
    spec = SessionSpec(
        base_model=CARD, lora=LoraConfig(rank=4, alpha=8, dropout=0.1), seed=7, publishes=dialect is Dialect.TOGETHER
    )
    ids = [str(number) for number in range(len(chosen.operations))]
    return SessionRun("run", chosen, "session", spec, ids, dict.fromkeys(range(len(ids)), End({})))


def told(run: SessionRun, expected: Expected) -> dict[int, End]:
    """The ends of an undisturbed run."""
    return {number: _end(run, number, result) for number, result in expected.results.items()}


def _end(run: SessionRun, number: int, result: Any) -> End:
    kind = run.plan.operations[number].kind
    if isinstance(result, ErrorCode):
        return End(None, result)
    if kind in CHECKPOINTS:
        return End({"checkpoint_id": run.ids[number]})
    return End(APIS[run.plan.dialect].view(kind, result))


@pytest.mark.parametrize("dialect", Dialect)
def test_an_undisturbed_run_differs_in_nothing_and_each_change_is_found(
    engine: Engine, model: Path, dialect: Dialect
) -> None:
    run = a_run(dialect)
    expected = run_undisturbed(engine, model, run, None)
    run.ends = told(run, expected)
    assert comparison.differences(APIS[dialect], run, expected) == []
    for number, end in run.ends.items():
        if end.data:
            run.ends[number] = End(None, ErrorCode.INTERNAL_ERROR)
            (line,) = comparison.differences(APIS[dialect], run, expected)
            assert f"operation {number} " in line
            run.ends[number] = end


@pytest.mark.parametrize("dialect", Dialect)
def test_an_operation_that_was_cancelled_must_have_changed_nothing(
    engine: Engine, model: Path, dialect: Dialect
) -> None:
    run = a_run(dialect)
    run.ends = told(run, run_undisturbed(engine, model, run, None))
    number = next(n for n, each in enumerate(run.accepted) if each.kind is OperationKind.OPTIM_STEP)
    run.ends[number], run.cancelled[number] = CANCELLED, True
    assert comparison.wrongly_ended(run) == []
    assert comparison.differences(APIS[dialect], run, run_undisturbed(engine, model, run, None))


def test_what_ended_must_agree_with_what_was_asked() -> None:
    run = a_run(Dialect.NATIVE)
    last = len(run.ids) - 1
    assert comparison.wrongly_ended(run) == []
    run.cancelled[2] = True
    assert len(comparison.wrongly_ended(run)) == 1  # it ran, though its cancel was granted
    run.ends[2] = CANCELLED
    run.ends[3] = CANCELLED
    assert len(comparison.wrongly_ended(run)) == 1  # nobody asked for it
    run.ends[3], run.ends[last] = End({}), INACTIVE
    assert len(comparison.wrongly_ended(run)) == 1  # the session was not stopped
    run.is_stopped = True
    assert comparison.wrongly_ended(run) == []
    run.ends[0] = INACTIVE
    assert len(comparison.wrongly_ended(run)) == 1  # later ones ran
