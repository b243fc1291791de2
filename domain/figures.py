"""What an operation adds to the counts and curves of its session."""

import msgspec
import numpy as np

from domain.forward_backward import ForwardBackwardRequest, ForwardBackwardResult
from domain.optim_step import OptimStepRequest, OptimStepResult
from domain.sample import SampleResult


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens that were sampled, tokens that were trained on, and `values` to be plotted over the session's steps."""

    sampled: int = 0
    trained: int = 0
    values: dict[str, float] = {}


NO_FIGURES = Figures()


def figures_of_sample(result: SampleResult) -> Figures:
    return Figures(sampled=sum(len(sequence.tokens) for sequence in result.sequences))


def figures_of_pass(request: ForwardBackwardRequest, result: ForwardBackwardResult) -> Figures:
    """A pass that adds no gradient trains nothing, and is on no training curve."""
    if request.forward_only:
        return NO_FIGURES
    trained = int(np.count_nonzero(request.weights_T))
    return Figures(trained=trained, values={"loss": result.loss, **result.metrics})


def figures_of_step(request: OptimStepRequest, result: OptimStepResult) -> Figures:
    return Figures(values={"learning_rate": request.learning_rate, **result.metrics})
