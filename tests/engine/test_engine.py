"""The engine as a whole: its life, its refusals, and sessions that do not disturb each other."""

import threading
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from domain.operation import ErrorCode, OperationFailedError
from domain.optim_step import OptimStepRequest
from domain.session import LoraConfig
from testing.tiny_model import make_tiny_model
from tests.engine.calls import (
    adapter_of,
    forward_backward,
    logprobs_of,
    model_of,
    optim_step,
    packed,
    random_sample,
    sample,
    sample_request,
)
from tests.engine.conftest import StartEngine
from workers.engine.config import EngineConfig
from workers.engine.engine import Engine
from workers.engine.failures import EngineClosedError

X = random_sample(1, 6)


def code_of(future: Future[Any]) -> ErrorCode:
    error = future.exception(timeout=60)
    assert isinstance(error, OperationFailedError)
    return error.error.code


@pytest.mark.parametrize(
    "settings", [{"device": "tpu"}, {"device": "mps"}, {"device": "cuda:99"}, {"dtype": "float16"}]
)
def test_an_unknown_device_or_dtype_is_refused_at_once(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(settings.values()))):
        Engine(EngineConfig(**settings))


def test_sessions_of_other_ranks_and_losses_train_side_by_side(start_engine: StartEngine, tiny: Path) -> None:
    def outcome(engine: Engine, sessions: list[str]) -> dict[str, np.ndarray]:
        for session in sessions:
            engine.create_adapter(session, tiny, LoraConfig(rank=ord(session) - 96, dropout=0.0), 1).result()
        wait([engine.forward_backward(session, packed([X]), 0) for session in sessions])
        wait([engine.optim_step(session, OptimStepRequest(learning_rate=0.05)) for session in sessions])
        return {session: logprobs_of(engine, [X], session)[0] for session in sessions}

    together = outcome(start_engine(micro_batch_tokens=4), ["a", "d"])
    for session, logprobs in together.items():
        np.testing.assert_array_equal(logprobs, outcome(start_engine(micro_batch_tokens=4), [session])[session])
    assert not np.array_equal(together["a"], together["d"])


def test_a_session_that_diverged_fails_alone(start_engine: StartEngine, tiny: Path) -> None:
    engine = start_engine()
    for session in ("good", "bad"):
        engine.create_adapter(session, tiny, LoraConfig(), 0).result()
    expected = sample(engine, [[1, 2, 3]], "good", max_tokens=30)
    adapter_of(engine, "bad").weights.fill_(float("nan"))
    for _ in range(2):
        asked = sample_request([[1, 2, 3]], num_samples=2, max_tokens=30)
        bad, good = engine.sample("bad", asked), engine.sample("good", sample_request([[1, 2, 3]], max_tokens=30))
        assert code_of(bad) is ErrorCode.NON_FINITE
        np.testing.assert_allclose(good.result().sequences[0].logprobs, expected[0].logprobs, atol=1e-5)


def test_an_unknown_session_fails_and_dropping_it_does_not(engine: Engine) -> None:
    assert code_of(engine.sample("nobody", sample_request([[1]]))) is ErrorCode.SESSION_NOT_ACTIVE
    assert code_of(engine.forward_backward("nobody", packed([X]), 0)) is ErrorCode.SESSION_NOT_ACTIVE
    assert code_of(engine.optim_step("nobody", OptimStepRequest())) is ErrorCode.SESSION_NOT_ACTIVE
    assert engine.drop_adapter("nobody").result() is None


def test_dropping_a_session_fails_what_it_has_in_flight_and_nothing_else(engine: Engine, tiny: Path) -> None:
    engine.create_adapter("t", tiny, LoraConfig(), 0).result()
    long = sample_request([[1]], num_samples=100, max_tokens=400)
    theirs, other = engine.sample("s", long), engine.sample("t", sample_request([[1]], max_tokens=5))
    engine.drop_adapter("s").result()
    assert code_of(theirs) is ErrorCode.SESSION_NOT_ACTIVE
    assert len(other.result().sequences) == 1
    assert code_of(engine.sample("s", long)) is ErrorCode.SESSION_NOT_ACTIVE


def test_dropping_a_session_ends_its_training(start_engine: StartEngine, tiny: Path) -> None:
    engine = start_engine(micro_batch_tokens=8)
    engine.create_adapter("s", tiny, LoraConfig(), 0).result()
    training = engine.forward_backward("s", packed([X] * 600), 0)
    engine.drop_adapter("s").result()
    assert code_of(training) is ErrorCode.SESSION_NOT_ACTIVE


def test_creating_a_session_again_starts_from_its_seed(engine: Engine, tiny: Path) -> None:
    before = logprobs_of(engine, [X])[0]
    forward_backward(engine, packed([X]))
    optim_step(engine, learning_rate=0.1)
    assert not np.array_equal(logprobs_of(engine, [X])[0], before)
    engine.create_adapter("s", tiny, LoraConfig(rank=4, alpha=8, dropout=0.0), seed=0).result()
    np.testing.assert_array_equal(logprobs_of(engine, [X])[0], before)


def test_small_samples_are_served_while_another_session_keeps_the_batch_full(engine: Engine, tiny: Path) -> None:
    engine.create_adapter("t", tiny, LoraConfig(), 0).result()
    long = engine.sample("s", sample_request([[1]], num_samples=256, max_tokens=300))
    engine.sample("t", sample_request([[1]], max_tokens=2)).result()
    assert model_of(engine, "t").decode_batch._waiting
    assert not long.done()
    engine.drop_adapter("s").result()


def test_samples_are_served_while_another_session_trains(start_engine: StartEngine, tiny: Path) -> None:
    engine = start_engine(micro_batch_tokens=8)
    for session in "st":
        engine.create_adapter(session, tiny, LoraConfig(), 0).result()
    training = engine.forward_backward("s", packed([X] * 600), 0)
    engine.sample("t", sample_request([[1]], max_tokens=4)).result()
    assert not training.done()
    assert training.result().metrics["valid_tokens:sum"] == 3600.0


def test_a_prompt_outside_the_vocabulary_is_refused(engine: Engine) -> None:
    assert code_of(engine.sample("s", sample_request([[1, 266]]))) is ErrorCode.INVALID_INPUT


def test_a_sequence_that_no_memory_could_hold_is_refused(engine: Engine) -> None:
    assert code_of(engine.sample("s", sample_request([[1]], max_tokens=10**12))) is ErrorCode.RESOURCE_EXHAUSTED


def test_running_out_of_memory_fails_the_job_with_a_code_and_the_engine_lives_on(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = model_of(engine).base

    def exhausted(*_: object) -> torch.Tensor:
        raise torch.OutOfMemoryError("out of memory")

    with monkeypatch.context() as patch:
        patch.setattr(base, "hidden", exhausted)
        assert code_of(engine.forward_backward("s", packed([X]), 0)) is ErrorCode.RESOURCE_EXHAUSTED
        assert code_of(engine.sample("s", sample_request([[1]]))) is ErrorCode.RESOURCE_EXHAUSTED
    assert len(sample(engine, [[1]], max_tokens=3)) == 1


def test_stop_strings_without_a_tokenizer_are_refused(tmp_path: Path, start_engine: StartEngine) -> None:
    make_tiny_model(tmp_path)
    for file in [*tmp_path.glob("tokenizer*"), *tmp_path.glob("chat_template*")]:
        file.unlink()
    engine = start_engine()
    engine.create_adapter("s", tmp_path, LoraConfig(), 0).result()
    assert code_of(engine.sample("s", sample_request([[1]], stop=("a",)))) is ErrorCode.INVALID_INPUT
    assert len(sample(engine, [[1]], max_tokens=3)) == 1


@pytest.mark.parametrize(
    ("family", "config", "reason"),
    [
        ("gpt2", {}, r"leave out attn.c_attn, attn.c_proj, mlp.c_fc, mlp.c_proj"),
        ("mamba", {}, "layers of type linear_attention"),
        ("doge", {}, "a mask of its own"),
        ("llama", {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}}, "rope type dynamic"),
    ],
)
def test_models_whose_numbers_we_would_not_reproduce_are_refused(
    tmp_path: Path, start_engine: StartEngine, family: str, config: dict[str, Any], reason: str
) -> None:
    directory = make_tiny_model(tmp_path, family=family, **config)
    future = start_engine().create_adapter("s", directory, LoraConfig(), 0)
    assert code_of(future) is ErrorCode.INVALID_INPUT
    assert reason in str(future.exception())


def test_a_directory_without_a_model_is_refused(tmp_path: Path, start_engine: StartEngine) -> None:
    assert code_of(start_engine().create_adapter("s", tmp_path, LoraConfig(), 0)) is ErrorCode.INVALID_INPUT


def test_closing_finishes_what_runs_and_fails_what_waits(engine: Engine) -> None:
    begun, gate = threading.Event(), threading.Event()

    def run(future: Future[bool]) -> None:
        begun.set()
        future.set_result(gate.wait())

    running = engine._submit(run)
    begun.wait()
    waiting = engine.sample("s", sample_request([[1]]))
    closing = threading.Thread(target=engine.close)
    closing.start()
    while not isinstance(engine.sample("s", sample_request([[1]])).exception(timeout=0.01), EngineClosedError):
        pass
    gate.set()
    closing.join()
    assert running.result() is True
    assert isinstance(waiting.exception(), EngineClosedError)


def test_a_sample_that_runs_when_the_engine_closes_is_finished(engine: Engine) -> None:
    running = engine.sample("s", sample_request([[1]], num_samples=2, max_tokens=100))
    while not model_of(engine).decode_batch._running:
        pass
    engine.close()
    assert len(running.result().sequences) == 2


def test_a_cancelled_future_never_begins(tiny: Path) -> None:
    engine = Engine(EngineConfig(device="cpu", kernels="native", torch_threads=1))
    created = engine.create_adapter("s", tiny, LoraConfig(), 0)
    cancelled = engine.sample("s", sample_request([[1]]))
    assert cancelled.cancel()
    engine.start()
    created.result()
    assert len(sample(engine, [[1]], max_tokens=2)) == 1
    engine.close()


def test_memory_of_the_cache_is_given_back_when_nothing_runs(engine: Engine) -> None:
    sample(engine, [[1] * 50], num_samples=8, max_tokens=100)
    engine.drop_adapter("nobody").result()  # so that the step that ended the sample is over
    cache = model_of(engine).decode_batch._cache
    assert cache.capacity == (0, 0)


def test_it_tells_how_full_its_passes_were_since_it_was_asked(start_engine: StartEngine, tiny: Path) -> None:
    engine = start_engine(max_batch_sequences=4, micro_batch_tokens=16)
    engine.create_adapter("s", tiny, LoraConfig(), 0).result()
    assert engine.take_utilization() == (0.0, 0.0)
    sample(engine, [[1, 2]], num_samples=3, max_tokens=1)
    forward_backward(engine, packed([([1, 2, 3, 4, 5, 6], [2, 3, 4, 5, 6, 7])] * 2))
    forward_backward(engine, packed([([1, 2, 3, 4], [2, 3, 4, 5])]))
    assert engine.take_utilization() == (3 / 4, (12 + 4) / 2 / 16)
    assert engine.take_utilization() == (0.0, 0.0)
