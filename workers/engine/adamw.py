"""AdamW over an adapter's flat vectors."""

import torch

from contract.optim_step import OptimStepRequest, OptimStepResult
from workers.engine.adapter import Adapter
from workers.engine.failures import invalid_input, non_finite


@torch.no_grad()
def optim_step(adapter: Adapter, request: OptimStepRequest) -> OptimStepResult:
    """One step with decoupled weight decay and bias correction (Loshchilov and Hutter 2019, arXiv:1711.05101).

    Divides the accumulated gradients by nothing and clears them. The metrics are L2 norms over the whole adapter.

    Raises:
        OperationFailedError: INVALID_INPUT when nothing was accumulated; NON_FINITE when the gradients or the
            step's result are not finite: the gradients are cleared, all else stays.
    """
    if adapter.accumulated_calls == 0:
        raise invalid_input("No gradients are accumulated. Run forward-backward before optim-step.")
    gradients = adapter.gradients
    exp_avg = torch.lerp(adapter.exp_avg, gradients, 1 - request.beta1)
    exp_avg_sq = request.beta2 * adapter.exp_avg_sq + (1 - request.beta2) * gradients.square()
    step = adapter.step + 1
    mean = exp_avg / (1 - request.beta1**step)
    spread = (exp_avg_sq / (1 - request.beta2**step)).sqrt_().add_(request.eps)
    decayed = adapter.weights.detach() * (1 - request.learning_rate * request.weight_decay)
    weights = decayed - request.learning_rate * (mean / spread)
    metrics = {"grad_norm": _norm(gradients), "update_norm": _norm(weights - adapter.weights)}
    if not all(bool(vector.isfinite().all()) for vector in (gradients, exp_avg, exp_avg_sq, weights)):
        adapter.clear_gradients()
        raise non_finite(
            "The gradients or the step are not finite; the gradients were cleared. Lower the learning rate."
        )
    adapter.weights.copy_(weights)
    adapter.exp_avg, adapter.exp_avg_sq, adapter.step = exp_avg, exp_avg_sq, step
    adapter.clear_gradients()
    return OptimStepResult(step=step, metrics=metrics)


def _norm(vector: torch.Tensor) -> float:
    return float(torch.linalg.vector_norm(vector, dtype=torch.float64))
