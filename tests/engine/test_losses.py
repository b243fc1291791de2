"""Losses against values worked out by hand in float64."""

import math
from typing import Any

import numpy as np
import pytest
import torch

from domain.forward_backward import Aggregation, CrossEntropy, ForwardBackwardRequest, Grpo, Loss
from tests.engine.calls import packed
from workers.engine.losses.arrays import TokenArrays
from workers.engine.losses.loss import report, scales, token_losses

HORIZON = 16


def of(lengths: list[int], loss: Loss, weights: Any = None, **arrays: Any) -> ForwardBackwardRequest:
    return packed([([0] * length, [0] * length) for length in lengths], loss, weights, **arrays)


def evaluate(request: ForwardBackwardRequest, logprobs: list[float]) -> tuple[float, dict[str, float], list[float]]:
    """The scalar, its metrics, and its gradient by the logprobs."""
    arrays = TokenArrays.of(request, torch.device("cpu"))
    trained = torch.from_numpy(request.weights_T != 0).nonzero()[:, 0]
    logprobs_T = torch.tensor(logprobs, requires_grad=True)
    scales_T = torch.from_numpy(scales(request, HORIZON))[trained]
    chosen = arrays.select(trained)
    scalar = (token_losses(logprobs_T[trained], chosen, request.loss) * scales_T).sum()
    (gradient,) = torch.autograd.grad(scalar, logprobs_T)
    entropies = torch.full_like(logprobs_T, 0.5)
    loss, metrics = report(logprobs_T.detach()[trained], entropies[trained], chosen, scales_T, request.loss, HORIZON)
    return loss, metrics, gradient.tolist()


def on_policy(lengths: list[int], advantages: list[list[float]], aggregation: Aggregation, **more: Any) -> float:
    logprobs = [[-1.0] * length for length in lengths]
    request = of(lengths, Grpo(aggregation=aggregation), advantages=advantages, generator_logprobs=logprobs, **more)
    return evaluate(request, [-1.0] * sum(lengths))[0]


def grpo_by_hand(lp: float, q: float, ref: float, a: float, low: float, high: float, beta: float) -> float:
    ratio = math.exp(lp - q)
    d = min(max(ref - lp, -10.0), 10.0)
    return max(-ratio * a, -min(max(ratio, low), high) * a) + beta * (math.exp(d) - d - 1)


@pytest.mark.parametrize("aggregation", list(Aggregation))
def test_grpo_equals_the_formula_written_out_in_float64(aggregation: Aggregation) -> None:
    rng = np.random.default_rng(3)
    lengths = [4, 0, 7, 1]
    lp, q, ref = (-rng.exponential(1.0, 12).astype(np.float32) for _ in range(3))
    advantages = rng.standard_normal(12).astype(np.float32)
    mask = np.array([1, 0, 1, 1, 0, 1, 1, 1, 1, 0, 1, 0], np.float32)
    parts = np.cumsum(lengths)[:-1].tolist()
    arrays = {"advantages": advantages, "generator_logprobs": q, "reference_logprobs": ref}
    loss = Grpo(ratio_low=0.7, ratio_high=1.5, beta=0.3, aggregation=aggregation)
    request = of(lengths, loss, np.split(mask, parts), **{k: np.split(v, parts) for k, v in arrays.items()})

    terms = [grpo_by_hand(*t, 0.7, 1.5, 0.3) for t in zip(lp, q, ref, advantages, strict=True)]
    masked = [m * t for m, t in zip(mask, terms, strict=True)]
    expected = {
        Aggregation.FIXED_HORIZON: sum(masked) / (4 * HORIZON),
        Aggregation.TOKEN_MEAN: sum(masked) / 8,
        Aggregation.SUM: sum(masked),
        Aggregation.SEQUENCE_MEAN: (sum(masked[:4]) / 3 + sum(masked[4:11]) / 5) / 4,
    }[aggregation]
    assert evaluate(request, lp.tolist())[0] == pytest.approx(expected, rel=1e-6)


def test_cross_entropy_is_the_mean_over_the_weights_fractions_too() -> None:
    request = of([2, 2], CrossEntropy(), [[0.5, 0.0], [2.0, 1.0]])
    loss, metrics, gradient = evaluate(request, [-1.0, -9.0, -2.0, -4.0])
    assert loss == pytest.approx((0.5 * 1 + 2 * 2 + 1 * 4) / 3.5)
    assert gradient == pytest.approx([-0.5 / 3.5, 0.0, -2 / 3.5, -1 / 3.5])
    assert metrics == pytest.approx({"loss:sum": 8.5, "loss:mean": 8.5 / 3.5, "valid_tokens:sum": 3.0})


def test_token_mean_and_sequence_mean_weigh_short_samples_differently() -> None:
    uneven = [[-0.5], [-0.3] * 9]
    assert on_policy([1, 9], uneven, Aggregation.TOKEN_MEAN) == pytest.approx(0.32)
    assert on_policy([1, 9], uneven, Aggregation.SEQUENCE_MEAN) == pytest.approx(0.40)
    opposed = [[1.0], [-1.0] * 4]
    assert on_policy([1, 4], opposed, Aggregation.TOKEN_MEAN) == pytest.approx(0.6)
    assert on_policy([1, 4], opposed, Aggregation.SEQUENCE_MEAN) == pytest.approx(0.0, abs=1e-9)


def test_fixed_horizon_divides_by_samples_and_horizon_never_by_length() -> None:
    assert on_policy([1, 3], [[2.0], [2.0] * 3], Aggregation.FIXED_HORIZON) == pytest.approx(-8 / (2 * HORIZON))


@pytest.mark.parametrize("aggregation", list(Aggregation))
def test_a_sample_without_trained_tokens_counts_and_adds_nothing(aggregation: Aggregation) -> None:
    loss = on_policy([3, 2], [[5.0] * 3, [1.0] * 2], aggregation, weights=[[0.0] * 3, [1.0] * 2])
    expected = {"fixed_horizon": -2 / (2 * HORIZON), "token_mean": -1.0, "sequence_mean": -0.5, "sum": -2.0}
    assert loss == pytest.approx(expected[aggregation.value])


@pytest.mark.parametrize("loss", [CrossEntropy(), *(Grpo(aggregation=a, beta=0.1) for a in Aggregation)])
def test_nothing_trained_is_loss_zero_with_zero_gradients_and_finite_metrics(loss: Loss) -> None:
    zeros = [[0.0] * 3]
    request = of([3], loss, zeros, advantages=zeros, generator_logprobs=zeros, reference_logprobs=zeros)
    value, metrics, gradient = evaluate(request, [-1.0, -2.0, -3.0])
    assert value == 0.0
    assert gradient == [0.0] * 3
    assert metrics["valid_tokens:sum"] == 0.0
    assert all(map(math.isfinite, metrics.values()))


def test_clip_bounds_are_absolute_ratios_taken_literally() -> None:
    def loss_at(ratio: float, advantage: float, low: float, high: float) -> float:
        request = of(
            [1],
            Grpo(ratio_low=low, ratio_high=high, aggregation=Aggregation.TOKEN_MEAN),
            advantages=[[advantage]],
            generator_logprobs=[[-1.0]],
        )
        return evaluate(request, [-1.0 + math.log(ratio)])[0]

    assert loss_at(1.5, 1.0, low=0.2, high=2.28) == pytest.approx(-1.5)
    assert loss_at(1.5, 1.0, low=0.8, high=1.28) == pytest.approx(-1.28)
    assert loss_at(1.5, -1.0, low=0.8, high=1.28) == pytest.approx(1.5)
    assert loss_at(0.5, -1.0, low=0.8, high=1.28) == pytest.approx(0.8)
    assert loss_at(0.5, -1.0, low=1.0, high=1.28) == pytest.approx(1.0)


def test_a_clipped_token_has_no_gradient_and_an_unclipped_one_has_minus_ratio_times_advantage() -> None:
    request = of(
        [3],
        Grpo(aggregation=Aggregation.TOKEN_MEAN),
        advantages=[[1.0, 1.0, 2.0]],
        generator_logprobs=[[-1.0, -1.0, -1.0]],
    )
    _, metrics, gradient = evaluate(request, [-1.0 + math.log(1.5), -1.0 + math.log(1.2), -1.0])
    assert gradient == pytest.approx([0.0, -1.2 / 3, -2 / 3], rel=1e-6)
    assert metrics["loss/clip/high_fraction"] == pytest.approx(1 / 3)
    assert metrics["loss/clip/low_fraction"] == 0.0
    assert metrics["loss/ratio/mean"] == pytest.approx((1.5 + 1.2 + 1) / 3)
    assert metrics["loss/ratio/max"] == pytest.approx(1.5)
    assert metrics["loss/kl_policy/mean"] == pytest.approx(-(math.log(1.5) + math.log(1.2)) / 3, rel=1e-5)
    assert metrics["entropy/mean"] == pytest.approx(0.5)
    assert "loss/kl_ref/mean" not in metrics
    assert "loss/horizon" not in metrics


@pytest.mark.parametrize(("shift", "expected"), [(1.0, 0.718282), (-1.0, 0.367879), (50.0, math.exp(10) - 11)])
def test_the_reference_kl_is_k3_in_the_stated_direction(shift: float, expected: float) -> None:
    request = of(
        [1],
        Grpo(beta=2.0, aggregation=Aggregation.TOKEN_MEAN),
        advantages=[[0.0]],
        generator_logprobs=[[-1.5]],
        reference_logprobs=[[-1.5 + shift]],
    )
    loss, metrics, _ = evaluate(request, [-1.5])
    assert loss == pytest.approx(2 * expected, rel=1e-5)
    assert metrics["loss/kl_ref/mean"] == pytest.approx(expected, rel=1e-5)


def test_the_kl_is_averaged_like_the_policy_term() -> None:
    def loss_by(aggregation: Aggregation) -> float:
        zeros = [[0.0], [0.0] * 4]
        request = of(
            [1, 4],
            Grpo(beta=1.0, aggregation=aggregation),
            advantages=zeros,
            generator_logprobs=zeros,
            reference_logprobs=[[1.0], [0.0] * 4],
        )
        return evaluate(request, [0.0] * 5)[0]

    assert loss_by(Aggregation.TOKEN_MEAN) == pytest.approx(0.143656, abs=1e-6)
    assert loss_by(Aggregation.SEQUENCE_MEAN) == pytest.approx(0.359141, abs=1e-6)


def test_the_loss_is_linear_in_the_advantage_however_large() -> None:
    assert on_policy([1], [[7428.0]], Aggregation.TOKEN_MEAN) == pytest.approx(-7428.0)


@pytest.mark.parametrize("loss", [Grpo(aggregation=a, beta=0.5) for a in Aggregation])
def test_excluded_tokens_influence_nothing_whatever_they_hold(loss: Grpo) -> None:
    def outcome(junk: float) -> tuple[float, dict[str, float], list[float]]:
        arrays = {
            "advantages": [[1.0, junk], [junk]],
            "generator_logprobs": [[-1.0, -junk], [junk]],
            "reference_logprobs": [[-1.0, junk], [-junk]],
        }
        return evaluate(of([2, 1], loss, [[1.0, 0.0], [0.0]], **arrays), [-1.1, -2.0, -3.0])

    assert outcome(3e38) == outcome(0.0)
    assert outcome(3e38)[2][1:] == [0.0, 0.0]


def test_fixed_horizon_reports_its_horizon() -> None:
    request = of([1], Grpo(), advantages=[[1.0]], generator_logprobs=[[-1.0]])
    assert evaluate(request, [-1.0])[1]["loss/horizon"] == HORIZON
