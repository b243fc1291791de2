"""What an operation adds to the counters and the metric series of its session."""

import msgspec
import numpy as np

from domain.forward_backward import ForwardBackwardRequest, ForwardBackwardResult
from domain.optim_step import OptimStepRequest, OptimStepResult
from domain.sample import SampleRequest, SampleResult


class OperationMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens that were sampled, tokens that were trained on, and `values` to be plotted over the session's steps."""

    sampled: int = 0
    trained: int = 0
    values: dict[str, float] = {}


NO_METRICS = OperationMetrics()


def metrics_of_sample(_: SampleRequest, result: SampleResult) -> OperationMetrics:
    return OperationMetrics(sampled=sum(len(sequence.tokens) for sequence in result.sequences))


def metrics_of_forward_backward(request: ForwardBackwardRequest, result: ForwardBackwardResult) -> OperationMetrics:
    """A call that adds no gradient trains nothing, and is in no series."""
    if request.forward_only:
        return NO_METRICS
    trained = int(np.count_nonzero(request.weights_T))
    return OperationMetrics(trained=trained, values={"loss": result.loss, **result.metrics})


def metrics_of_optim_step(request: OptimStepRequest, result: OptimStepResult) -> OperationMetrics:
    return OperationMetrics(values={"learning_rate": request.learning_rate, **result.metrics})
