"""Forward-backward on whole tiny models."""

import math
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from domain.forward_backward import Aggregation, CrossEntropy, ForwardBackwardRequest, Grpo, RatioType
from domain.operation import ErrorCode, OperationFailedError
from domain.session import LoraConfig
from tests.engine.calls import (
    adapter_of,
    forward_backward,
    logprobs_of,
    optim_step,
    packed,
    random_sample,
    random_tokens,
    sample,
)
from tests.engine.conftest import StartEngine
from workers.engine.engine import Engine

X, Y, Z = random_sample(1, 3), random_sample(2, 7), random_sample(3, 20)


def gradients_of(engine: Engine, session: str = "s") -> torch.Tensor:
    return adapter_of(engine, session).gradients.clone()


def weights_of(engine: Engine, session: str = "s") -> torch.Tensor:
    return adapter_of(engine, session).weights.detach().clone()


def train_a_little(engine: Engine, session: str = "s", steps: int = 3) -> None:
    for seed in range(steps):
        forward_backward(engine, packed([random_sample(seed, 12)]), session, seed)
        optim_step(engine, session, learning_rate=0.02)


def failure(engine: Engine, request: ForwardBackwardRequest) -> ErrorCode:
    with pytest.raises(OperationFailedError) as caught:
        forward_backward(engine, request)
    return caught.value.error.code


def test_logprobs_are_those_of_transformers(engine: Engine, tiny: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(tiny)
    for (tokens, targets), ours in zip([X, Y, Z], logprobs_of(engine, [X, Y, Z]), strict=True):
        with torch.no_grad():
            logits = model(torch.from_numpy(tokens).long()[None]).logits[0]
        expected = torch.log_softmax(logits, -1)[torch.arange(len(targets)), torch.from_numpy(targets).long()]
        np.testing.assert_allclose(ours, expected.numpy(), atol=1e-5)


def test_a_ragged_batch_is_the_token_mean_of_its_samples_in_any_order(engine: Engine) -> None:
    x, y, both, reverse = (forward_backward(engine, packed(samples)).loss for samples in ([X], [Y], [X, Y], [Y, X]))
    assert both == pytest.approx((3 * x + 7 * y) / 10, rel=1e-5)
    assert reverse == pytest.approx(both, rel=1e-6)


def test_the_loss_is_the_one_asked_for(engine: Engine) -> None:
    logprobs = logprobs_of(engine, [Z])
    assert forward_backward(engine, packed([Z], CrossEntropy())).loss == pytest.approx(-logprobs[0].mean(), rel=1e-5)
    policy = packed([Z], Grpo(aggregation=Aggregation.TOKEN_MEAN), advantages=[[1.0] * 20], generator_logprobs=logprobs)
    assert forward_backward(engine, policy).loss == pytest.approx(-1.0, abs=1e-5)


MEANS = [each for each in Aggregation if each is not Aggregation.SUM]
BY_SEQUENCE = Grpo(ratio_type=RatioType.SEQUENCE, aggregation=Aggregation.SEQUENCE_MEAN)


@pytest.mark.parametrize("loss", [CrossEntropy(), BY_SEQUENCE, *(Grpo(aggregation=a, beta=0.2) for a in MEANS)])
def test_loss_and_gradients_do_not_depend_on_the_micro_batches(
    start_engine: StartEngine, tiny: Path, loss: CrossEntropy | Grpo
) -> None:
    samples = [Z, X, Y, X]
    arrays = {
        name: [np.random.default_rng(k).normal(size=len(tokens)) for k, (tokens, _) in enumerate(samples)]
        for name in ("advantages", "generator_logprobs", "reference_logprobs")
    }
    weights = [[1.0] * 20, [0.0] * 3, [1.0, 0, 1, 0, 1, 0, 0], [1.0] * 3]
    outcomes = []
    for micro_batch_tokens in (1, 30, 4096):
        engine = start_engine(micro_batch_tokens=micro_batch_tokens)
        engine.create_adapter("s", tiny, LoraConfig(rank=4, dropout=0.3), 0).result()
        train_a_little(engine)
        result = forward_backward(engine, packed(samples, loss, weights, **arrays), seed=11)
        outcomes.append((result, gradients_of(engine)))
    for result, gradients in outcomes[1:]:
        assert result.loss == pytest.approx(outcomes[0][0].loss, rel=1e-5)
        assert result.metrics == pytest.approx(outcomes[0][0].metrics, rel=1e-4, abs=1e-5)
        torch.testing.assert_close(gradients, outcomes[0][1], rtol=1e-3, atol=1e-5)


def test_gradients_are_the_derivative_of_the_loss(engine: Engine) -> None:
    train_a_little(engine)
    request = packed([Y, Z])
    forward_backward(engine, request)
    gradients = gradients_of(engine)
    adapter = adapter_of(engine)
    direction = torch.randn(len(gradients), generator=torch.Generator().manual_seed(0))
    losses = []
    for sign in (-1, 1):
        adapter.weights.add_(sign * 3e-4 * direction)
        losses.append(forward_backward(engine, packed([Y, Z], forward_only=True)).loss)
        adapter.weights.add_(-sign * 3e-4 * direction)
    derivative = (losses[1] - losses[0]) / 6e-4
    assert derivative == pytest.approx(float(gradients @ direction), rel=2e-2)


def test_gradients_of_successive_calls_add(engine: Engine) -> None:
    train_a_little(engine)
    forward_backward(engine, packed([X]))
    first = gradients_of(engine)
    forward_backward(engine, packed([Y]))
    both = gradients_of(engine)
    optim_step(engine, learning_rate=0.0)
    forward_backward(engine, packed([Y]))
    torch.testing.assert_close(both, first + gradients_of(engine))


def test_on_policy_ratios_are_one_with_default_dropout_and_after_steps(start_engine: StartEngine, tiny: Path) -> None:
    engine = start_engine()
    engine.create_adapter("s", tiny, LoraConfig(dropout=0.05), 0).result()
    train_a_little(engine, steps=5)
    prompt = random_tokens(9, 6)
    (drawn,) = sample(engine, [prompt], max_tokens=20, temperature=0.5)
    tokens = np.concatenate([prompt, drawn.tokens])
    length = len(tokens) - 1
    known = np.zeros(length, np.float32)
    known[5:] = drawn.logprobs
    request = packed(
        [(tokens[:-1], tokens[1:])],
        Grpo(aggregation=Aggregation.TOKEN_MEAN),
        [[0.0] * 5 + [1.0] * (length - 5)],
        advantages=[[1.0] * length],
        generator_logprobs=[known],
    )
    first, second = forward_backward(engine, request, seed=1), forward_backward(engine, request, seed=2)
    assert first == second
    assert first.loss == pytest.approx(-1.0, abs=1e-5)
    assert first.metrics["loss/ratio/max"] == pytest.approx(1.0, abs=1e-4)


def test_dropout_acts_in_cross_entropy_and_follows_its_seed_but_not_in_scoring(
    start_engine: StartEngine, tiny: Path
) -> None:
    engine = start_engine()
    engine.create_adapter("s", tiny, LoraConfig(dropout=0.5), 0).result()
    train_a_little(engine)
    losses = [forward_backward(engine, packed([Z]), seed=seed).loss for seed in (1, 1, 2)]
    assert losses[0] == losses[1] != losses[2]
    scored = {forward_backward(engine, packed([Z], forward_only=True), seed=seed).loss for seed in (1, 2)}
    assert len(scored) == 1
    assert scored != {losses[0]}


@pytest.mark.parametrize("aggregation", list(Aggregation))
def test_masked_samples_train_nothing_and_count_as_documented(engine: Engine, aggregation: Aggregation) -> None:
    train_a_little(engine)

    def run(samples: list[Any], weights: list[Any]) -> float:
        arrays = [[1.0] * len(tokens) for tokens, _ in samples]
        loss = Grpo(aggregation=aggregation, ratio_high=1e9)
        zeros = [[-5.0] * len(part) for part in arrays]
        return forward_backward(
            engine, packed(samples, loss, weights, advantages=arrays, generator_logprobs=zeros)
        ).loss

    alone, padded = run([Y], [[1.0] * 7]), run([X, Y], [[0.0] * 3, [1.0] * 7])
    factor = 1.0 if aggregation in (Aggregation.TOKEN_MEAN, Aggregation.SUM) else 0.5
    assert padded == pytest.approx(alone * factor, rel=1e-5)


def test_nothing_trained_is_loss_zero_and_makes_a_step_legal(engine: Engine) -> None:
    result = forward_backward(engine, packed([X], weights=[[0.0] * 3]))
    assert result.loss == 0.0
    assert all(map(math.isfinite, result.metrics.values()))
    assert optim_step(engine)["grad_norm"] == 0.0


def test_zero_advantages_give_no_gradient(engine: Engine) -> None:
    zeros = [[0.0] * 3]
    result = forward_backward(
        engine, packed([X], Grpo(), advantages=zeros, generator_logprobs=logprobs_of(engine, [X]))
    )
    assert result.loss == 0.0
    assert not gradients_of(engine).any()


def test_empty_samples_are_accepted(engine: Engine) -> None:
    nothing: tuple[list[int], list[int]] = ([], [])
    assert forward_backward(engine, packed([nothing])).loss == 0.0
    with_nothing, without = forward_backward(engine, packed([nothing, X])), forward_backward(engine, packed([X]))
    assert with_nothing.loss == without.loss


def test_forward_only_adds_nothing(engine: Engine) -> None:
    forward_backward(engine, packed([X], forward_only=True))
    assert not gradients_of(engine).any()
    with pytest.raises(OperationFailedError, match="No gradients"):
        optim_step(engine)


def test_a_call_that_is_not_finite_fails_and_earlier_gradients_stay(engine: Engine) -> None:
    forward_backward(engine, packed([X]))
    before = gradients_of(engine)
    extreme = packed([X], Grpo(), advantages=[[-1.0] * 3], generator_logprobs=[[-1e30] * 3])
    assert failure(engine, extreme) is ErrorCode.NON_FINITE
    assert torch.equal(gradients_of(engine), before)
    assert optim_step(engine)["grad_norm"] == pytest.approx(before.norm().item())


def test_excluded_tokens_cannot_make_a_call_fail(engine: Engine) -> None:
    extreme = [[0.0, 3e38, -3e38]]
    request = packed([X], Grpo(), [[1.0, 0, 0]], advantages=extreme, generator_logprobs=extreme)
    assert forward_backward(engine, request).metrics["valid_tokens:sum"] == 1.0


@pytest.mark.parametrize("token", [-1, 266])
def test_a_token_outside_the_vocabulary_is_refused_with_its_index(engine: Engine, token: int) -> None:
    with pytest.raises(OperationFailedError, match=rf"Token {token} at index 1 of the target tokens") as caught:
        forward_backward(engine, packed([([1, 2], [3, token])]))
    assert caught.value.error.code is ErrorCode.INVALID_INPUT


def test_the_same_operations_give_the_same_weights_bit_for_bit(start_engine: StartEngine, tiny: Path) -> None:
    outcomes = []
    for others in (0, 2):
        engine = start_engine(micro_batch_tokens=16)
        for session in ["s", *(f"other{k}" for k in range(others))]:
            engine.create_adapter(session, tiny, LoraConfig(dropout=0.1), 5).result()
        futures = [engine.forward_backward(f"other{k}", packed([Z, Y, X]), k) for k in range(others)]
        train_a_little(engine)
        assert all(math.isfinite(future.result().loss) for future in futures)
        outcomes.append(weights_of(engine))
    assert torch.equal(*outcomes)


def test_a_group_that_shares_its_prompt_has_the_loss_and_gradients_of_samples_that_do_not(
    start_engine: StartEngine, tiny: Path
) -> None:
    prompt = random_tokens(1, 40)
    group = [
        np.concatenate([prompt, random_tokens(seed, length)]) for seed, length in [(2, 9), (3, 1), (4, 30), (5, 2)]
    ]
    samples = [(tokens[:-1], tokens[1:]) for tokens in group]
    weights = [[0.0] * 39 + [1.0] * (len(tokens) - 39) for tokens, _ in samples]
    weights[2][10] = 1.0
    arrays = {
        name: [np.random.default_rng(k).normal(size=len(tokens)) for k, (tokens, _) in enumerate(samples)]
        for name in ("advantages", "generator_logprobs")
    }
    outcomes = []
    # With one token a pass nothing is shared, with a few hundred the prompt is run once.
    for micro_batch_tokens in (1, 4096):
        engine = start_engine(micro_batch_tokens=micro_batch_tokens)
        engine.create_adapter("s", tiny, LoraConfig(rank=4, dropout=0.0), 0).result()
        train_a_little(engine)
        result = forward_backward(engine, packed(samples, Grpo(), weights, **arrays))
        outcomes.append((result, gradients_of(engine)))
    assert outcomes[0][0].loss == pytest.approx(outcomes[1][0].loss, rel=1e-5)
    torch.testing.assert_close(outcomes[0][1], outcomes[1][1], rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_calls_that_share_a_pass_train_as_they_would_alone(
    start_engine: StartEngine, tiny: Path, dtype: str, kernels: str
) -> None:
    calls = {
        "a": packed([X, Y, Z]),
        "b": packed([Y], Grpo(), advantages=[[1.0] * 7], generator_logprobs=[[-5.0] * 7]),
        "c": packed([Z, Z], weights=[[0.0] * 20, [1.0] * 20]),
    }
    gradients: dict[bool, dict[str, torch.Tensor]] = {}
    for merges in (False, True):
        engine = start_engine(merge_training=merges, dtype=dtype, kernels=kernels)
        for rank, session in enumerate(calls, start=2):
            engine.create_adapter(session, tiny, LoraConfig(rank=rank, dropout=0.1), rank).result()
            train_a_little(engine, session)
        gate = threading.Event()
        engine._submit(lambda future, gate=gate: future.set_result(gate.wait()))
        futures = [engine.forward_backward(session, request, 7) for session, request in calls.items()]
        gate.set()
        assert all(math.isfinite(future.result().loss) for future in futures)
        gradients[merges] = {session: gradients_of(engine, session) for session in calls}
    for session in calls:
        assert torch.equal(gradients[True][session], gradients[False][session]), session


def test_a_call_that_fails_in_a_shared_pass_fails_alone(start_engine: StartEngine, tiny: Path) -> None:
    engine = start_engine()
    for session in "ab":
        engine.create_adapter(session, tiny, LoraConfig(rank=2, dropout=0.0), 1).result()
    adapter_of(engine, "b").weights.fill_(float("nan"))
    gate = threading.Event()
    engine._submit(lambda future: future.set_result(gate.wait()))
    good, bad = (engine.forward_backward(session, packed([X, Y]), 0) for session in "ab")
    gate.set()
    assert isinstance(bad.exception(), OperationFailedError)
    assert math.isfinite(good.result().loss)
    assert gradients_of(engine, "a").isfinite().all()


def test_bf16_bases_train_fp32_adapters_with_ratios_near_one(start_engine: StartEngine, tiny: Path) -> None:
    engine = start_engine(dtype="bfloat16")
    engine.create_adapter("s", tiny, LoraConfig(rank=4, dropout=0.0), 0).result()
    train_a_little(engine)
    assert weights_of(engine).dtype is torch.float32
    logprobs = logprobs_of(engine, [Z])
    assert logprobs[0].dtype == np.float32
    off_the_bf16_grid = logprobs[0] != torch.from_numpy(logprobs[0]).bfloat16().float().numpy()
    assert off_the_bf16_grid.any()
