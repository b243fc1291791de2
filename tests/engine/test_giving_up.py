"""A call that its caller gives up: it changes nothing, frees what it had, and nobody beside it notices."""

from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from domain.operation import ErrorCode, OperationFailedError
from domain.optim_step import OptimStepRequest
from domain.session import LoraConfig
from tests.engine.calls import (
    adapter_of,
    forward_backward,
    model_of,
    optim_step,
    packed,
    random_sample,
    random_tokens,
    sample,
    sample_request,
)
from tests.engine.conftest import StartEngine
from tests.gate import Gate
from workers.engine.engine import Engine
from workers.engine.loading import model_loader
from workers.engine.training.vectors import is_finite

LORA = LoraConfig(rank=4, alpha=8, dropout=0.0)
LONG = packed([random_sample(seed, 6) for seed in range(8)])


def started(start_engine: StartEngine, tiny: Path, *sessions: str, **settings: Any) -> Engine:
    engine = start_engine(micro_batch_tokens=12, **settings)
    for session in sessions:
        engine.create_adapter(session, tiny, LORA, seed=ord(session)).result()
    return engine


def settle(engine: Engine) -> None:
    """Returns when the engine has seen to all that came before."""
    engine.drop_adapter("nobody").result()


def gradients(engine: Engine, session: str) -> Tensor:
    return adapter_of(engine, session).gradients.clone()


@pytest.mark.usefixtures("kernels")
def test_a_sample_leaves_its_places_at_the_next_step_and_the_others_go_on_to_the_same_bits(
    start_engine: StartEngine, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = started(start_engine, tiny, "a", "b", max_batch_sequences=6)
    asked = sample_request([random_tokens(1, 5)], num_samples=2, max_tokens=20)
    (alone,) = [engine.sample("b", asked).result()]
    gate = Gate(monkeypatch, model_of(engine, "a").base, "logits", at=6)
    theirs = engine.sample("a", sample_request([[1], [2, 3]], num_samples=4, max_tokens=10_000))
    mine = engine.sample("b", asked)
    gate.wait()
    assert theirs.cancel()
    gate.open()
    for sequence, expected in zip(mine.result().sequences, alone.sequences, strict=True):
        np.testing.assert_array_equal(sequence.tokens, expected.tokens)
        np.testing.assert_array_equal(sequence.logprobs, expected.logprobs)
    settle(engine)
    batch = model_of(engine, "a").decode_batch
    assert not batch._running and not batch._waiting
    assert batch._cache.capacity == (0, 0)


def test_a_scoring_stops_between_two_prompts(
    start_engine: StartEngine, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = started(start_engine, tiny, "a")
    gate = Gate(monkeypatch, model_of(engine, "a").base, "hidden", at=2)
    scoring = engine.score_prompts("a", sample_request([[1, 2]] * 5))
    gate.wait()
    assert scoring.cancel()
    gate.open()
    settle(engine)
    assert not engine._core.is_busy
    assert gate.left == 0, "no third prompt was run"


@pytest.mark.parametrize("micro_batch", [1, 2, 4])
def test_a_forward_backward_adds_nothing_even_when_it_is_given_up_in_its_last_pass(
    start_engine: StartEngine, tiny: Path, monkeypatch: pytest.MonkeyPatch, micro_batch: int
) -> None:
    engine = started(start_engine, tiny, "a")
    forward_backward(engine, packed([random_sample(9, 6)]), "a")
    before = gradients(engine, "a")
    assert before.any()
    gate = Gate(monkeypatch, model_of(engine, "a").base, "hidden", at=micro_batch)
    training = engine.forward_backward("a", LONG, 0)
    gate.wait()
    assert training.cancel()
    following = engine.forward_backward("a", packed([random_sample(3, 6)]), 0)
    gate.open()
    following.result()
    undisturbed = started(start_engine, tiny, "a")
    for seed in (9, 3):
        forward_backward(undisturbed, packed([random_sample(seed, 6)]), "a")
    assert torch.equal(gradients(engine, "a"), gradients(undisturbed, "a"))
    assert not torch.equal(gradients(engine, "a"), before)


def test_the_sessions_that_share_its_passes_get_the_same_bits(
    start_engine: StartEngine, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = started(start_engine, tiny, "a", "b")
    gate = Gate(monkeypatch, model_of(engine, "a").base, "hidden", at=2)
    short = packed([random_sample(seed, 6) for seed in range(20, 25)])
    theirs, mine = engine.forward_backward("a", LONG, 0), engine.forward_backward("b", short, 0)
    gate.wait()
    assert theirs.cancel()
    gate.open()
    loss = mine.result().loss
    alone = started(start_engine, tiny, "b")
    assert loss == forward_backward(alone, short, "b").loss
    assert torch.equal(gradients(engine, "b"), gradients(alone, "b"))
    assert not gradients(engine, "a").any()


def test_one_that_is_being_added_can_not_be_given_up_and_is_answered(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch, adapter_of(engine), "accumulate")
    training = engine.forward_backward("s", LONG, 0)
    gate.wait()
    assert not training.cancel()
    gate.open()
    assert training.result().metrics["valid_tokens:sum"] == 48
    assert gradients(engine, "s").any()


def test_a_step_and_a_weights_sync_that_wait_for_the_engine_do_not_happen(
    start_engine: StartEngine, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = started(start_engine, tiny, "a", "b")
    engine.create_adapter("a", tiny, LORA, seed=1, publishes=True).result()
    forward_backward(engine, LONG, "a")
    adapter, published = adapter_of(engine, "a"), engine._core._cached["a"].published
    weights, gradient = adapter.weights.clone(), gradients(engine, "a")
    gate = Gate(monkeypatch, model_of(engine, "b").base, "hidden")
    engine.forward_backward("b", LONG, 0)
    gate.wait()
    step, sync = engine.optim_step("a", OptimStepRequest()), engine.weights_sync("a")
    assert step.cancel()
    assert sync.cancel()
    gate.open()
    settle(engine)
    assert torch.equal(adapter.weights, weights)
    assert torch.equal(adapter.gradients, gradient)
    assert adapter.step == 0
    assert engine._core._cached["a"].published is published
    optim_step(engine, "a")
    assert adapter.step == 1


def test_an_adapter_that_is_no_longer_wanted_when_its_model_has_loaded_is_not_kept(
    start_engine: StartEngine, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = start_engine()
    gate = Gate(monkeypatch, model_loader, "BaseModel")
    created = engine.create_adapter("a", tiny, LORA, seed=1)
    gate.wait()
    assert created.cancel()
    gate.open()
    settle(engine)
    assert not engine._core._cached
    engine.create_adapter("a", tiny, LORA, seed=1).result()
    assert len(sample(engine, [[1]], "a", max_tokens=2)) == 1


def test_whenever_calls_are_given_up_the_gradient_is_that_of_those_that_were_answered(
    start_engine: StartEngine, tiny: Path
) -> None:
    engine, random = started(start_engine, tiny, "a"), np.random.default_rng(0)
    requests = [packed([random_sample(seed, 6), random_sample(seed + 100, 6)]) for seed in range(60)]
    answered: list[int] = []
    for number, request in enumerate(requests):
        training = engine.forward_backward("a", request, 0)
        # Some never, some at once, most at any moment.
        pause = [None, 0.0, random.uniform(0, 0.01), random.uniform(0, 0.005)][number % 4]
        if pause is None or not given_up_after(training, pause):
            answered.append(number)
            assert training.result().loss > 0
    settle(engine)
    assert 0 < len(answered) < len(requests), "some of each, or it shows nothing"
    alone = started(start_engine, tiny, "a")
    for number in answered:
        forward_backward(alone, requests[number], "a")
    assert torch.equal(gradients(engine, "a"), gradients(alone, "a"))


def given_up_after(future: "Future[Any]", seconds: float) -> bool:
    """Whether it was, rather than answered."""
    wait([future], seconds)
    return future.cancel()


def test_a_call_whose_report_does_not_fit_in_memory_ends_and_those_beside_it_go_on(
    start_engine: StartEngine, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, calls = started(start_engine, tiny, "a", "b"), list[int]()

    def exhausted_at_first(numbers: Tensor) -> bool:
        calls.append(1)
        if len(calls) == 1:
            raise torch.OutOfMemoryError("out of memory")
        return is_finite(numbers)

    monkeypatch.setattr("workers.engine.training.forward_backward.is_finite", exhausted_at_first)
    gate = Gate(monkeypatch, model_of(engine, "a").base, "hidden")
    engine.sample("a", sample_request([[1]], max_tokens=1))
    gate.wait()
    one = packed([random_sample(1, 6)])
    first, second = engine.forward_backward("a", one, 0), engine.forward_backward("b", one, 0)
    gate.open()
    error = first.exception(60)
    assert isinstance(error, OperationFailedError)
    assert error.error.code is ErrorCode.RESOURCE_EXHAUSTED
    assert second.result(60).loss > 0
