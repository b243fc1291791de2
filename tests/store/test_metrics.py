"""What operations add to counts and curves, computed by hand."""

import numpy as np

from domain.forward_backward import CrossEntropy, ForwardBackwardRequest, ForwardBackwardResult
from domain.metrics import (
    NO_METRICS,
    OperationMetrics,
    metrics_of_forward_backward,
    metrics_of_optim_step,
    metrics_of_sample,
)
from domain.optim_step import OptimStepRequest, OptimStepResult
from domain.sample import SampleRequest, SampleResult, SamplingParams, Sequence, StopReason


def sequence(tokens: int) -> Sequence:
    return Sequence(np.zeros(tokens, np.int32), np.zeros(tokens, np.float32), StopReason.STOP)


def trained(forward_only: bool) -> OperationMetrics:
    request = ForwardBackwardRequest(
        offsets=np.array([0, 2, 5], np.int64),
        tokens_T=np.arange(5, dtype=np.int32),
        targets_T=np.arange(5, dtype=np.int32),
        weights_T=np.array([0, 1, 0.5, 0, 1], np.float32),
        loss=CrossEntropy(),
        forward_only=forward_only,
    )
    return metrics_of_forward_backward(request, ForwardBackwardResult(loss=1.5, metrics={"entropy/mean": 2.0}))


def test_a_sample_counts_the_tokens_of_its_completions() -> None:
    request = SampleRequest(prompts=(), num_samples=3, params=SamplingParams(), seed=0)
    result = SampleResult((sequence(3), sequence(0), sequence(4)))
    assert metrics_of_sample(request, result) == OperationMetrics(sampled=7)


def test_a_forward_backward_counts_the_tokens_that_weigh_something_and_plots_its_metrics() -> None:
    assert trained(forward_only=False) == OperationMetrics(trained=3, values={"loss": 1.5, "entropy/mean": 2.0})


def test_a_forward_backward_without_a_gradient_trains_nothing() -> None:
    assert trained(forward_only=True) == NO_METRICS


def test_a_step_plots_its_learning_rate_too() -> None:
    measured = metrics_of_optim_step(
        OptimStepRequest(learning_rate=0.5), OptimStepResult(step=4, metrics={"grad_norm": 3.0})
    )
    assert measured == OperationMetrics(values={"learning_rate": 0.5, "grad_norm": 3.0})
