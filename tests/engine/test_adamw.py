from typing import Any

import pytest
import torch

from domain.operation import ErrorCode, OperationFailedError
from domain.optim_step import OptimStepRequest
from domain.session import LoraConfig
from schemas.optim_step import LEAST_EPS
from workers.engine.adapters.adapter import Adapter
from workers.engine.adapters.layout import Group, Shape
from workers.engine.training.optim_step import optim_step


@pytest.fixture
def adapter() -> Adapter:
    return Adapter(
        (Group((Shape("up", 6, 4),)), Group((Shape("down", 4, 6),))),
        LoraConfig(rank=2, alpha=4),
        0,
        torch.device("cpu"),
    )


def accumulate(adapter: Adapter, seed: int, size: float = 1.0) -> torch.Tensor:
    gradients = size * torch.randn(len(adapter.weights), generator=torch.Generator().manual_seed(seed))
    adapter.accumulate(gradients)
    return gradients


def failure(adapter: Adapter, **settings: Any) -> ErrorCode:
    with pytest.raises(OperationFailedError) as caught:
        optim_step(adapter, OptimStepRequest(**settings))
    return caught.value.error.code


def test_steps_equal_those_of_torch_with_settings_of_their_own_each(adapter: Adapter) -> None:
    theirs = torch.nn.Parameter(adapter.weights.detach().clone())
    reference = torch.optim.AdamW([theirs])
    for seed, (rate, beta1, beta2, eps, decay) in enumerate(
        [(1e-2, 0.9, 0.95, 1e-8, 0.1), (3e-3, 0.5, 0.99, 1e-3, 0.0), (1.0, 0.0, 0.9, 1.0, 0.5)]
    ):
        theirs.grad = accumulate(adapter, seed)
        reference.param_groups[0].update(lr=rate, betas=(beta1, beta2), eps=eps, weight_decay=decay)
        reference.step()
        before = adapter.weights.detach().clone()
        result = optim_step(
            adapter,
            OptimStepRequest(learning_rate=rate, beta1=beta1, beta2=beta2, eps=eps, weight_decay=decay),
        )
        torch.testing.assert_close(adapter.weights, theirs.detach(), rtol=1e-6, atol=1e-7)
        assert result.step == seed + 1
        assert result.metrics["grad_norm"] == pytest.approx(theirs.grad.norm().item())
        assert result.metrics["update_norm"] == pytest.approx((adapter.weights - before).norm().item(), rel=1e-5)


@pytest.mark.parametrize("size", [1.0, 1e3])
def test_the_first_step_moves_by_the_learning_rate_whatever_the_gradients_size(adapter: Adapter, size: float) -> None:
    before = adapter.weights.detach().clone()
    gradients = accumulate(adapter, 0, size)
    optim_step(adapter, OptimStepRequest(learning_rate=2e-3, weight_decay=0.0))
    torch.testing.assert_close(adapter.weights - before, -2e-3 * gradients.sign(), rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize("beta2", [0.5, 0.95, 0.999, 0.9999])
@pytest.mark.parametrize("exponent", range(-26, -9, 2))
def test_with_the_least_eps_a_step_is_that_of_float64_however_small_the_gradients(
    adapter: Adapter, beta2: float, exponent: int
) -> None:
    theirs = adapter.weights.detach().double()
    mean, square = torch.zeros_like(theirs), torch.zeros_like(theirs)
    settings: Any = {"learning_rate": 1.0, "beta1": 0.9, "beta2": beta2, "eps": LEAST_EPS, "weight_decay": 0.0}
    for step in (1, 2, 3):
        gradients = accumulate(adapter, step, 10.0**exponent).double()
        mean, square = 0.9 * mean + 0.1 * gradients, beta2 * square + (1 - beta2) * gradients**2
        theirs = theirs - (mean / (1 - 0.9**step)) / ((square / (1 - beta2**step)).sqrt() + LEAST_EPS)
        optim_step(adapter, OptimStepRequest(**settings))
    torch.testing.assert_close(adapter.weights.detach().double(), theirs, rtol=0.0, atol=5e-3)


def test_an_eps_of_one_is_honoured(adapter: Adapter) -> None:
    before = adapter.weights.detach().clone()
    gradients = accumulate(adapter, 0)
    optim_step(adapter, OptimStepRequest(learning_rate=2e-3, eps=1.0, weight_decay=0.0))
    expected = -2e-3 * gradients / (gradients.abs() + 1)
    torch.testing.assert_close(adapter.weights - before, expected, rtol=1e-3, atol=1e-7)


def test_weight_decay_shrinks_weights_without_gradient(adapter: Adapter) -> None:
    before = adapter.weights.detach().clone()
    adapter.accumulate(torch.zeros_like(adapter.gradients))
    optim_step(adapter, OptimStepRequest(learning_rate=2e-3, weight_decay=0.5))
    torch.testing.assert_close(adapter.weights, before * (1 - 2e-3 * 0.5))


def test_gradients_of_calls_add_and_a_step_clears_them(adapter: Adapter) -> None:
    total = accumulate(adapter, 0) + accumulate(adapter, 1)
    assert optim_step(adapter, OptimStepRequest()).metrics["grad_norm"] == pytest.approx(total.norm().item())
    assert failure(adapter) is ErrorCode.INVALID_INPUT


def test_a_learning_rate_of_zero_leaves_the_weights_bit_for_bit(adapter: Adapter) -> None:
    before = adapter.weights.detach().clone()
    accumulate(adapter, 0)
    optim_step(adapter, OptimStepRequest(learning_rate=0.0))
    assert torch.equal(adapter.weights, before)


def test_a_step_without_gradients_is_refused_and_changes_nothing(adapter: Adapter) -> None:
    before = adapter.weights.detach().clone()
    assert failure(adapter) is ErrorCode.INVALID_INPUT
    assert torch.equal(adapter.weights, before)
    assert adapter.step == 0


@pytest.mark.parametrize(("gradient", "rate"), [(float("inf"), 1e-4), (float("nan"), 1e-4), (1e30, 1e-4), (1.0, 1e39)])
def test_a_step_that_is_not_finite_clears_the_gradients_and_nothing_else(
    adapter: Adapter, gradient: float, rate: float
) -> None:
    accumulate(adapter, 0)
    optim_step(adapter, OptimStepRequest())
    before = [vector.clone() for vector in (adapter.weights.detach(), adapter.exp_avg, adapter.exp_avg_sq)]
    gradients = torch.zeros_like(adapter.gradients)
    gradients[3] = gradient
    adapter.accumulate(gradients)
    assert failure(adapter, learning_rate=rate) is ErrorCode.NON_FINITE
    after = [adapter.weights, adapter.exp_avg, adapter.exp_avg_sq]
    assert all(torch.equal(old, new) for old, new in zip(before, after, strict=True))
    assert adapter.step == 1
    assert failure(adapter) is ErrorCode.INVALID_INPUT


def test_gradients_above_the_clip_norm_are_scaled_down_to_it_and_others_left_alone(adapter: Adapter) -> None:
    theirs = torch.nn.Parameter(adapter.weights.detach().clone())
    reference = torch.optim.AdamW([theirs], lr=1e-2, betas=(0.9, 0.95), weight_decay=0.1)
    for seed, size in enumerate((10.0, 0.001)):
        theirs.grad = accumulate(adapter, seed, size).clone()
        norm = float(torch.nn.utils.clip_grad_norm_([theirs], 0.5))
        reference.step()
        result = optim_step(adapter, OptimStepRequest(learning_rate=1e-2, grad_clip_norm=0.5))
        assert result.metrics["grad_norm"] == pytest.approx(norm, rel=1e-6)
    torch.testing.assert_close(adapter.weights.detach(), theirs.detach(), rtol=1e-5, atol=1e-7)


def test_gradients_that_are_not_finite_stay_so_when_clipped(adapter: Adapter) -> None:
    adapter.accumulate(torch.full_like(adapter.gradients, torch.inf))
    assert failure(adapter, grad_clip_norm=1.0) is ErrorCode.NON_FINITE
