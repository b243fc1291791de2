"""An optim-step: applies the accumulated gradients, clipped if asked, to the weights."""

import torch
from torch import Tensor

from domain.optim_step import OptimStepRequest, OptimStepResult
from workers.engine.adapters.adapter import Adapter
from workers.engine.failures import invalid_input, non_finite
from workers.engine.training.optimizers import adamw, muon
from workers.engine.training.vectors import is_finite, norm


@torch.no_grad()
def optim_step(adapter: Adapter, request: OptimStepRequest) -> OptimStepResult:
    """Applies the sum of the accumulated gradients and clears it. The metrics are L2 norms over the whole adapter.

    Raises:
        OperationFailedError: INVALID_INPUT when nothing was accumulated; NON_FINITE when the gradients or the
            step's result are not finite: the gradients are cleared, all else stays.
    """
    if adapter.accumulated_calls == 0:
        raise invalid_input("No gradients are accumulated. Run forward-backward before optim-step.")
    grad_norm = norm(adapter.gradients)
    gradients = _clipped(adapter.gradients, grad_norm, request.grad_clip_norm)
    update = muon(adapter, gradients, request, request.muon) if request.muon else None
    weights, exp_avg, exp_avg_sq = update or adamw(adapter, gradients, request)
    metrics = {"grad_norm": grad_norm, "update_norm": norm(weights - adapter.weights)}
    if not all(map(is_finite, (gradients, exp_avg, exp_avg_sq, weights))):
        adapter.clear_gradients()
        raise non_finite(
            "The gradients or the step are not finite; the gradients were cleared. Lower the learning rate."
        )
    adapter.weights.copy_(weights)
    adapter.exp_avg, adapter.exp_avg_sq, adapter.step = exp_avg, exp_avg_sq, adapter.step + 1
    adapter.clear_gradients()
    return OptimStepResult(step=adapter.step, metrics=metrics)


def _clipped(gradients: Tensor, length: float, most: float) -> Tensor:
    """Scaled to the norm `most` where theirs, `length`, is above it (Pascanu et al. 2013, arXiv:1211.5063)."""
    return gradients * (most / length) if 0 < most < length else gradients
