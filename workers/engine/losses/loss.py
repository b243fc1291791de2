"""Dispatches a request's loss to its function, and reports its metrics."""

import numpy as np
from torch import Tensor

from domain.forward_backward import (
    Aggregation,
    CrossEntropy,
    ForwardBackwardRequest,
    Grpo,
    Loss,
    WeightedLogprobs,
)
from workers.engine.losses.aggregation import token_scales
from workers.engine.losses.arrays import TokenArrays
from workers.engine.losses.grpo import grpo, grpo_metrics
from workers.engine.losses.policy import policy_losses


def token_losses(logprobs_T: Tensor, arrays: TokenArrays, loss: Loss) -> Tensor:
    """L_t fp32 [T]; differentiable by the logprobs."""
    match loss:
        case CrossEntropy():
            return cross_entropy(logprobs_T)
        case Grpo():
            return grpo(logprobs_T, arrays, loss)
        case WeightedLogprobs():
            return logprobs_T
        case _:
            return policy_losses(logprobs_T, arrays, loss)


def scales(request: ForwardBackwardRequest, horizon: int) -> np.ndarray:
    """fp64 [T] with which loss = sum_t scale_t * L_t."""
    return token_scales(request.weights_T, request.offsets, _aggregation(request.loss), horizon)


def report(
    logprobs_T: Tensor, entropies_T: Tensor, arrays: TokenArrays, scales_T: Tensor, loss: Loss, horizon: int
) -> tuple[float, dict[str, float]]:
    """The scalar and its metrics, from the trained tokens of a whole call (scales fp64, the rest fp32)."""
    losses_T = token_losses(logprobs_T, arrays, loss).double()
    weights_T = arrays.weights_T.double()
    total, weight = float((weights_T * losses_T).sum()), float(weights_T.sum())
    metrics = {
        "loss:sum": total,
        # Weights that cancel out have no mean, as none have: a gradient that pushes one token up and one down is fine.
        "loss:mean": total / weight if weight else 0.0,
        "valid_tokens:sum": float(len(losses_T)),
    }
    if _aggregation(loss) is Aggregation.FIXED_HORIZON:
        metrics["loss/horizon"] = float(horizon)
    if isinstance(loss, Grpo):
        metrics |= grpo_metrics(logprobs_T, entropies_T, arrays, loss)
    return float((scales_T * losses_T).sum()), metrics


def _aggregation(loss: Loss) -> Aggregation:
    return loss.aggregation if isinstance(loss, CrossEntropy | Grpo) else Aggregation.SUM


def cross_entropy(logprobs_T: Tensor) -> Tensor:
    """L_t = -lp_t."""
    return -logprobs_T
