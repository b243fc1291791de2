"""AdamW over an adapter's flat vectors."""

from torch import Tensor, lerp

from domain.optim_step import OptimStepRequest
from workers.engine.adapter import Adapter

Update = tuple[Tensor, Tensor, Tensor]


def update(adapter: Adapter, gradients: Tensor, request: OptimStepRequest) -> Update:
    """The weights and both moments after a step with decoupled weight decay and bias correction (Loshchilov and Hutter
    2019, arXiv:1711.05101); the adapter's own stay."""
    exp_avg = lerp(adapter.exp_avg, gradients, 1 - request.beta1)
    exp_avg_sq = request.beta2 * adapter.exp_avg_sq + (1 - request.beta2) * gradients.square()
    step = adapter.step + 1
    mean = exp_avg / (1 - request.beta1**step)
    spread = (exp_avg_sq / (1 - request.beta2**step)).sqrt_().add_(request.eps)
    decayed = adapter.weights.detach() * (1 - request.learning_rate * request.weight_decay)
    return decayed - request.learning_rate * (mean / spread), exp_avg, exp_avg_sq
