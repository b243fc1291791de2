"""A base model is loaded beside the engine's work: others go on, and whoever waits for it is told what came of it."""

import threading
from concurrent.futures import Future, wait
from pathlib import Path

import pytest
import torch
from transformers.models.llama import modeling_llama
from transformers.models.qwen2 import modeling_qwen2

from domain.operation import ErrorCode, OperationFailedError
from domain.session import LoraConfig
from testing.tiny_model import make_tiny_model, reconfigured
from tests.engine.calls import adapter_of, failure_of, packed, random_sample, sample_request
from tests.engine.conftest import StartEngine
from tests.gate import Gate
from workers.background import in_background
from workers.engine.engine import Engine
from workers.engine.failures import EngineClosedError
from workers.engine.loading import model_loader
from workers.engine.loading.base_model import BaseModel
from workers.engine.loading.description import describe

LORA = LoraConfig(rank=4, alpha=8, dropout=0.0)
CPU = torch.device("cpu")
TIMEOUT = 30


@pytest.fixture
def other(tmp_path: Path) -> Path:
    return make_tiny_model(tmp_path / "other")


def test_sessions_of_other_models_sample_and_train_while_one_is_being_loaded(
    engine: Engine, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch, model_loader, "BaseModel")
    coming = engine.create_adapter("t", other, LORA, seed=1)
    gate.wait()
    try:
        assert engine.sample("s", sample_request([[1, 2]], max_tokens=3)).result(TIMEOUT).sequences
        assert engine.forward_backward("s", packed([random_sample(0, 6)]), 0).result(TIMEOUT).loss > 0
        engine.drop_adapter("nobody").result(TIMEOUT)
        assert not coming.done()
    finally:
        gate.open()
    coming.result(TIMEOUT)
    assert engine.sample("t", sample_request([[1, 2]], max_tokens=3)).result(TIMEOUT).sequences


def test_models_are_loaded_one_at_a_time_and_once_for_all_who_wait(
    start_engine: StartEngine, tiny: Path, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, begun = start_engine(), list[Path]()
    load = BaseModel.__init__

    def counted(self: BaseModel, directory: Path, *rest: object) -> None:
        begun.append(directory)
        load(self, directory, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(BaseModel, "__init__", counted)
    gate = Gate(monkeypatch, model_loader, "give_back")
    created = [engine.create_adapter(id, folder, LORA, 0) for id, folder in (("a", tiny), ("b", other), ("c", tiny))]
    gate.wait()
    assert begun == [tiny]
    gate.open()
    for future in created:
        future.result(TIMEOUT)
    assert begun == [tiny, other]


def test_all_who_wait_are_told_what_failed_and_the_next_one_tries_again(
    start_engine: StartEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, engine = reconfigured(make_tiny_model(tmp_path), num_hidden_layers=3), start_engine()
    gate = Gate(monkeypatch, model_loader, "BaseModel")
    waiting = [engine.create_adapter(id, directory, LORA, 0) for id in "ab"]
    gate.wait()
    gate.open()
    for future in waiting:
        failed = failure_of(future)
        assert failed.code is ErrorCode.INVALID_INPUT and "its files lack tensors" in failed.message
    assert failure_of(engine.load_model(directory)).message == failed.message
    reconfigured(directory, num_hidden_layers=2)
    engine.create_adapter("a", directory, LORA, 0).result(TIMEOUT)


def test_a_session_that_is_dropped_while_its_model_is_being_loaded_does_not_come(
    start_engine: StartEngine, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = start_engine()
    gate = Gate(monkeypatch, model_loader, "BaseModel")
    created = engine.create_adapter("a", tiny, LORA, 0)
    gate.wait()
    engine.drop_adapter("a").result(TIMEOUT)
    assert failure_of(created).code is ErrorCode.SESSION_NOT_ACTIVE
    gate.open()
    engine.load_model(tiny).result(TIMEOUT)
    engine.drop_adapter("nobody").result(TIMEOUT)
    assert not engine._core._cached


def test_who_waits_for_a_model_when_the_engine_is_closed_is_told_at_once(
    start_engine: StartEngine, tiny: Path, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = start_engine()
    gate = Gate(monkeypatch, model_loader, "BaseModel")
    waiting: list[Future[None]] = [engine.create_adapter(id, tiny, LORA, 0) for id in "ab"]
    gate.wait()
    waiting.append(engine.create_adapter("c", other, LORA, 0))
    closing = threading.Thread(target=engine.close)
    closing.start()
    for future in waiting:
        assert isinstance(future.exception(TIMEOUT), EngineClosedError)
    gate.open()
    closing.join(TIMEOUT)
    assert not closing.is_alive()
    assert isinstance(engine.load_model(other).exception(TIMEOUT), EngineClosedError)


def test_a_model_that_takes_longer_than_it_may_is_given_up_and_not_refused(
    start_engine: StartEngine, tiny: Path
) -> None:
    late = failure_of(start_engine(model_load_timeout=1e-9).load_model(tiny))
    assert late.code is ErrorCode.TIMEOUT and "CELERITY_MODEL_LOAD_TIMEOUT" in late.message


@pytest.mark.parametrize("family", ["llama", "phi3"])
@pytest.mark.parametrize("raised", [EngineClosedError("closed"), OperationFailedError(ErrorCode.TIMEOUT, "late")])
def test_a_load_ends_between_two_layers(tmp_path: Path, family: str, raised: Exception) -> None:
    directory, checks = make_tiny_model(tmp_path, family=family, layers=6, pad_token_id=0), list[int]()

    def check() -> None:
        checks.append(1)
        if len(checks) == 5:
            raise raised

    with pytest.raises(type(raised)):
        BaseModel(directory, CPU, torch.float32, check)
    assert len(checks) == 5


def test_the_loader_takes_half_of_the_threads_and_leaves_the_engine_its_own(
    start_engine: StartEngine, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, seen = torch.get_num_threads(), list[int]()
    load = BaseModel.__init__

    def observed(*args: object) -> None:
        seen.append(torch.get_num_threads())
        load(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(BaseModel, "__init__", observed)
    try:
        engine = start_engine(torch_threads=4)
        engine.load_model(tiny).result(TIMEOUT)
        counted = engine._submit(lambda future: future.set_result(torch.get_num_threads()))
        assert (seen, counted.result(TIMEOUT)) == ([2], 4)
        begun = in_background(torch.get_num_threads)
        assert begun.result(TIMEOUT) == 4, "of a thread that begins later"
    finally:
        torch.set_num_threads(before)


def test_the_engine_rests_while_transformers_has_another_default_dtype(
    start_engine: StartEngine, tiny: Path, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = start_engine(dtype="bfloat16")
    engine.create_adapter("a", tiny, LORA, 0).result(TIMEOUT)
    # It is made once before without its weights, to see how large it is.
    gate = Gate(monkeypatch, modeling_llama, "LlamaModel", at=2)
    coming = engine.load_model(other)
    gate.wait()
    assert torch.get_default_dtype() is torch.bfloat16
    created = engine.create_adapter("b", tiny, LORA, 0)
    # It would have been made long since, of bfloat16.
    wait([created], 0.5)
    gate.open()
    created.result(TIMEOUT)
    assert adapter_of(engine, "b").weights.dtype is torch.float32
    coming.result(TIMEOUT)
    assert torch.get_default_dtype() is torch.float32


def test_an_engine_that_closes_lets_no_model_be_made(start_engine: StartEngine) -> None:
    engine = start_engine()
    engine.close()
    with pytest.raises(EngineClosedError), engine._paused():
        raise AssertionError("it never rested")


def test_models_are_made_one_at_a_time_so_that_the_default_dtype_is_as_before(
    tmp_path: Path, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    qwen = make_tiny_model(tmp_path / "qwen", family="qwen2")
    first = Gate(monkeypatch, modeling_llama, "LlamaModel", at=2)
    second = Gate(monkeypatch, modeling_qwen2, "Qwen2Model")
    loading = threading.Thread(target=BaseModel, args=(other, CPU, torch.bfloat16))
    loading.start()
    first.wait()
    describing = threading.Thread(target=describe, args=(qwen,))
    describing.start()
    # Long enough for it to find the dtype of the other model.
    describing.join(0.5)
    first.open()
    loading.join(TIMEOUT)
    second.open()
    describing.join(TIMEOUT)
    assert torch.get_default_dtype() is torch.float32
