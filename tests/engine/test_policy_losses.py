"""The losses that sum over tokens, and sequence ratios, against their formulas written out in float64."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from domain.forward_backward import (
    Aggregation,
    Cispo,
    CrossEntropy,
    Dppo,
    Dro,
    Grpo,
    ImportanceSampling,
    Loss,
    Ppo,
    RatioType,
    WeightedLogprobs,
)
from tests.engine.test_losses import evaluate, of

MASK = [1.0, 0.0, 1.0, 1.0, 1.0]
LENGTHS = [2, 3]


def split(values: Any) -> list[Any]:
    return np.split(np.asarray(values, np.float32), np.cumsum(LENGTHS)[:-1])


def clamp(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


def importance_sampling(lp: float, q: float, a: float) -> tuple[float, float]:
    ratio = math.exp(lp - q)
    return -ratio * a, -ratio * a


def ppo(lp: float, q: float, a: float) -> tuple[float, float]:
    ratio = math.exp(lp - q)
    plain, clipped = -ratio * a, -clamp(ratio, 0.7, 1.1) * a
    return max(plain, clipped), plain if plain >= clipped else 0.0


def cispo(lp: float, q: float, a: float) -> tuple[float, float]:
    weight = clamp(math.exp(lp - q), 0.5, 2.0)
    return -weight * a * lp, -weight * a


def dro(lp: float, q: float, a: float) -> tuple[float, float]:
    return -(a * lp - 0.5 * 0.3 * (lp - q) ** 2), -a + 0.3 * (lp - q)


def dppo(lp: float, q: float, a: float) -> tuple[float, float]:
    moved = math.exp(lp) - math.exp(q)
    if (a > 0 and moved > 0.1) or (a < 0 and moved < -0.2):
        return 0.0, 0.0
    return importance_sampling(lp, q, a)


BY_HAND: list[tuple[Loss, Callable[[float, float, float], tuple[float, float]]]] = [
    (ImportanceSampling(), importance_sampling),
    (Ppo(ratio_low=0.7, ratio_high=1.1), ppo),
    (Cispo(ratio_low=0.5, ratio_high=2.0), cispo),
    (Dro(beta=0.3), dro),
    (Dppo(delta_low=0.2, delta_high=0.1), dppo),
]


@pytest.mark.parametrize(("loss", "by_hand"), BY_HAND, ids=[type(loss).__name__ for loss, _ in BY_HAND])
def test_a_policy_loss_and_its_gradient_are_sums_of_the_formula(
    loss: Loss, by_hand: Callable[[float, float, float], tuple[float, float]]
) -> None:
    lp, q = [-0.1, -3.0, -1.5, -0.2, -2.0], [-0.5, -1.0, -0.3, -0.9, -2.0]
    for advantages in ([1.5, 9.0, -2.0, -0.5, 0.75], [-1.0, 9.0, 2.0, 0.5, 0.0]):
        arrays = {"advantages": split(advantages), "generator_logprobs": split(q)}
        value, metrics, gradient = evaluate(of(LENGTHS, loss, split(MASK), **arrays), lp)
        terms = [by_hand(*each) for each in zip(lp, q, advantages, strict=True)]
        assert value == pytest.approx(sum(m * term[0] for m, term in zip(MASK, terms, strict=True)), rel=1e-5, abs=1e-6)
        assert gradient == pytest.approx([m * term[1] for m, term in zip(MASK, terms, strict=True)], rel=1e-5)
        assert metrics["loss:sum"] == pytest.approx(value, rel=1e-6)
        assert metrics["valid_tokens:sum"] == 4.0


def test_cross_entropy_may_be_a_sum_over_fractional_weights() -> None:
    request = of(LENGTHS, CrossEntropy(aggregation=Aggregation.SUM), split([0.5, 0.0, 2.0, 1.0, 0.25]))
    value, _, gradient = evaluate(request, [-1.0, -9.0, -2.0, -4.0, -8.0])
    assert value == pytest.approx(0.5 + 4 + 4 + 2)
    assert gradient == pytest.approx([-0.5, 0.0, -2.0, -1.0, -0.25])


def test_weighted_logprobs_have_the_weights_as_their_gradient_whatever_their_sign() -> None:
    weights = [0.5, 0.0, -2.0, 1.0, -0.25]
    value, _, gradient = evaluate(of(LENGTHS, WeightedLogprobs(), split(weights)), [-1.0, -9.0, -2.0, -4.0, -8.0])
    assert value == pytest.approx(-0.5 + 4 - 4 + 2)
    assert gradient == pytest.approx(weights)


@pytest.mark.parametrize("loss", [WeightedLogprobs(), CrossEntropy(aggregation=Aggregation.SUM)])
def test_weights_that_cancel_out_are_finite_and_have_a_mean_of_zero(loss: Loss) -> None:
    value, metrics, gradient = evaluate(of([2], loss, [[0.5, -0.5]]), [-1.0, -4.0])
    sign = 1 if isinstance(loss, WeightedLogprobs) else -1
    assert (value, gradient) == (sign * 1.5, [sign * 0.5, sign * -0.5])
    assert metrics == {"loss:sum": sign * 1.5, "loss:mean": 0.0, "valid_tokens:sum": 2.0}


@pytest.mark.parametrize("aggregation", [Aggregation.SEQUENCE_MEAN, Aggregation.TOKEN_MEAN])
def test_a_sequence_ratio_is_the_geometric_mean_of_the_trained_tokens_ratios(aggregation: Aggregation) -> None:
    lp, q = [-0.1, -3.0, -1.5, -0.2, -2.0], [-0.2, -1.0, -1.3, -0.4, -2.1]
    advantages = [2.0, 2.0, -1.0, -1.0, -1.0]
    arrays = {"advantages": split(advantages), "generator_logprobs": split(q)}
    loss = Grpo(aggregation=aggregation, ratio_type=RatioType.SEQUENCE, ratio_low=0.5, ratio_high=1.5)
    value, metrics, gradient = evaluate(of(LENGTHS, loss, split(MASK), **arrays), lp)
    first, second = math.exp(0.1), math.exp((-0.2 + 0.2 + 0.1) / 3)
    if aggregation is Aggregation.SEQUENCE_MEAN:
        expected, gradients = (-2 * first + second) / 2, (-first, second / 6)
    else:
        expected, gradients = (-2 * first + 3 * second) / 4, (-2 * first / 4, second / 4)
    assert value == pytest.approx(expected, rel=1e-5)
    assert gradient == pytest.approx([gradients[0], 0.0, *[gradients[1]] * 3], rel=1e-5)
    assert metrics["loss/ratio/max"] == pytest.approx(first, rel=1e-5)


def test_a_clipped_sequence_gives_none_of_its_tokens_a_gradient() -> None:
    arrays = {"advantages": split([1.0] * 5), "generator_logprobs": split([-1.0] * 5)}
    loss = Grpo(aggregation=Aggregation.SEQUENCE_MEAN, ratio_type=RatioType.SEQUENCE, ratio_high=1.2)
    _, metrics, gradient = evaluate(of(LENGTHS, loss, **arrays), [-0.5, -0.5, -1.0, -1.0, -1.0])
    assert gradient == pytest.approx([0.0, 0.0, *[-1 / 6] * 3], rel=1e-5)
    assert metrics["loss/clip/high_fraction"] == pytest.approx(2 / 5)


FAR = [100.0, 1000.0, 3.4e38]
LARGEST = float(np.finfo(np.float32).max)
# What a token with lp -0.5 and advantage A adds, and its gradient, when its generator's logprob is lower by any of FAR:
# its ratio is above every bound, in float64 too for the larger two.
REMOVED: list[tuple[Loss, float, float, float]] = [
    (Ppo(ratio_low=0.7, ratio_high=1.1), 2.0, -2.2, 0.0),
    (Grpo(aggregation=Aggregation.SUM), 2.0, -2.56, 0.0),
    (Grpo(aggregation=Aggregation.SUM, ratio_type=RatioType.SEQUENCE), 2.0, -2.56, 0.0),
    (Dppo(), 2.0, 0.0, 0.0),
    (Cispo(ratio_high=4.0), 2.0, -4.0 * 2.0 * -0.5, -8.0),
    (Cispo(ratio_high=4.0), -2.0, 4.0 * 2.0 * -0.5, 8.0),
    (Dro(beta=0.0), 2.0, 1.0, -2.0),
    *[
        (loss, 0.0, 0.0, 0.0)
        for loss in (ImportanceSampling(), Ppo(), Grpo(aggregation=Aggregation.SUM), Dppo(), Cispo(), Dro(beta=0.0))
    ],
]


@pytest.mark.parametrize("far", FAR)
@pytest.mark.parametrize(("loss", "advantage", "value", "gradient"), REMOVED)
def test_a_token_that_is_clipped_or_left_out_adds_its_bound_and_no_gradient_whatever_its_ratio(
    loss: Loss, advantage: float, value: float, gradient: float, far: float
) -> None:
    arrays = {"advantages": [[1.0], [advantage]], "generator_logprobs": [[-1.0], [-0.5 - far]]}
    total, metrics, gradients = evaluate(of([1, 1], loss, **arrays), [-1.0, -0.5])
    alone, _, (own,) = evaluate(of([1], loss, advantages=[[1.0]], generator_logprobs=[[-1.0]]), [-1.0])
    assert total == pytest.approx(alone + value, rel=1e-6)
    assert gradients == pytest.approx([own, gradient], rel=1e-6)
    assert all(map(math.isfinite, metrics.values()))


@pytest.mark.parametrize("loss", [Ppo(), Grpo(aggregation=Aggregation.SUM), Dppo()])
def test_a_token_that_is_far_below_the_lower_bound_adds_it_and_no_gradient(loss: Loss) -> None:
    arrays = {"advantages": [[-2.0]], "generator_logprobs": [[-0.5]]}
    total, _, gradient = evaluate(of([1], loss, **arrays), [-200.0])
    assert total == pytest.approx(0.0 if isinstance(loss, Dppo) else 2.0 * 0.8)
    assert gradient == [0.0]


def test_what_is_not_clipped_and_beyond_fp32_is_not_finite() -> None:
    for loss, advantage in ((ImportanceSampling(), 1.0), (Ppo(), -1.0), (Grpo(), -1.0)):
        arrays = {"advantages": [[advantage]], "generator_logprobs": [[-100.0]]}
        assert not math.isfinite(evaluate(of([1], loss, **arrays), [-0.5])[0])


def test_metrics_of_ratios_beyond_fp32_are_its_largest_number() -> None:
    arrays = {"advantages": [[1.0] * 4], "generator_logprobs": [[-1.0, -101.0, -1001.0, -3.4e38]]}
    _, metrics, gradient = evaluate(of([4], Grpo(aggregation=Aggregation.SUM), **arrays), [-1.0] * 4)
    assert metrics["loss/ratio/max"] == LARGEST
    assert metrics["loss/ratio/mean"] == pytest.approx((1 + 3 * LARGEST) / 4)
    assert metrics["loss/kl_policy/mean"] == pytest.approx((0 - 100 - 1000 - 3.4e38) / 4)
    assert metrics["loss/clip/high_fraction"] == 0.75
    assert gradient == [-1.0, 0.0, 0.0, 0.0]


def test_log_ratios_beyond_fp32_cancel_out_in_a_sequence_s_mean() -> None:
    arrays = {"advantages": [[1.0] * 4], "generator_logprobs": [[-3e38, -3e38, 3e38, 3e38]]}
    loss = Grpo(aggregation=Aggregation.SUM, ratio_type=RatioType.SEQUENCE)
    total, metrics, gradient = evaluate(of([4], loss, **arrays), [0.0] * 4)
    assert total == pytest.approx(-4.0)
    assert gradient == pytest.approx([-1.0] * 4)
    assert metrics["loss/ratio/max"] == 1.0
