"""A model that is long in loading, through the tasks of a worker: the sessions of other models do not notice."""

import threading
from pathlib import Path

import pytest

from domain.operation import OperationKind
from domain.optim_step import OptimStepRequest
from domain.session import LoraConfig, SessionSpec, SessionStatus
from testing.tiny_model import make_tiny_model
from tests.engine.calls import packed, random_sample
from tests.gate import Gate
from tests.workers.conftest import Begin
from workers.engine.loading import model_loader

TIMEOUT = 30


def test_sessions_sample_train_and_begin_while_the_model_of_another_is_being_loaded(
    begin: Begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tiny_model(tmp_path / "models" / "slow")
    harness = begin()
    session = harness.session()
    gate = Gate(monkeypatch, model_loader, "BaseModel")
    (card,) = (card for card in harness.worker.catalog.cards() if card.name == "slow")
    spec = SessionSpec(base_model=card, lora=LoraConfig(), seed=1)
    slow = harness.store.sessions.create(spec, [harness.worker.worker_id])
    creating = threading.Thread(target=harness.deliver)
    creating.start()
    gate.wait()
    done: list[object] = []

    def work() -> None:
        done.append(harness.sample(session))
        train = harness.run(session, OperationKind.FORWARD_BACKWARD, packed([random_sample(0, 6)]))
        step = harness.run(session, OperationKind.OPTIM_STEP, OptimStepRequest())
        done.extend((train.error, step.error, harness.sample(harness.session())))

    working = threading.Thread(target=work)
    working.start()
    working.join(TIMEOUT)
    meanwhile, seen = done.copy(), harness.store.sessions.get(slow.id).status
    gate.open()
    for thread in (working, creating):
        thread.join(TIMEOUT)
    assert len(meanwhile) == 4 and meanwhile[1:3] == [None, None]
    assert seen is SessionStatus.CREATING
    assert harness.store.sessions.get(slow.id).status is SessionStatus.RUNNING
