"""What an optim-step does to an adapter's flat vectors: AdamW, or Muon over its matrices."""

import torch
from torch import Tensor, lerp

from domain.optim_step import Muon, OptimStepRequest
from workers.engine.adapters.adapter import Adapter

# Muon's quintic: steep at 0, and mapping singular values of (0, 1] to about 1, though never quite.
A, B, C = 3.4445, -4.7750, 2.0315
TINY = 1e-7

Update = tuple[Tensor, Tensor, Tensor]


def adamw(adapter: Adapter, gradients: Tensor, request: OptimStepRequest) -> Update:
    """The weights and both moments after a step with decoupled weight decay and bias correction (Loshchilov and Hutter
    2019, arXiv:1711.05101); the adapter's own stay."""
    exp_avg = lerp(adapter.exp_avg, gradients, 1 - request.beta1)
    exp_avg_sq = request.beta2 * adapter.exp_avg_sq + (1 - request.beta2) * gradients.square()
    step = adapter.step + 1
    mean = exp_avg / (1 - request.beta1**step)
    spread = (exp_avg_sq / (1 - request.beta2**step)).sqrt_().add_(request.eps)
    decayed = adapter.weights.detach() * (1 - request.learning_rate * request.weight_decay)
    return decayed - request.learning_rate * (mean / spread), exp_avg, exp_avg_sq


def muon(adapter: Adapter, gradients: Tensor, request: OptimStepRequest, params: Muon) -> Update:
    """The weights, the momentum (kept where AdamW has its first moment) and the unused second moment after a step with
    Nesterov momentum and decoupled weight decay (Jordan et al. 2024, kellerjordan.github.io/posts/muon); the adapter's
    own stay."""
    momentum = lerp(adapter.exp_avg, gradients, 1 - params.momentum)
    ahead = lerp(gradients, momentum, params.momentum)
    direction = torch.empty_like(ahead)
    for wanted, made in zip(adapter.layout.pairs(ahead), adapter.layout.pairs(direction), strict=True):
        for matrix_MN, out_MN in ((wanted.A, made.A), (wanted.B, made.B)):
            out_MN.copy_(scale(matrix_MN, params) * orthogonal(matrix_MN, params.newton_schulz_steps))
    decayed = adapter.weights.detach() * (1 - request.learning_rate * request.weight_decay)
    return decayed - request.learning_rate * direction, momentum, adapter.exp_avg_sq


def orthogonal(matrix_MN: Tensor, steps: int) -> Tensor:
    """About U V^T of the matrix's singular value decomposition U S V^T, by Newton-Schulz iterations; 0 stays 0."""
    wide_MN = matrix_MN.mT if matrix_MN.shape[0] > matrix_MN.shape[1] else matrix_MN
    # In fp32 the squares of large gradients would not be finite, and the step nothing.
    x_MN = wide_MN / (torch.linalg.vector_norm(wide_MN, dtype=torch.float64) + TINY)
    for _ in range(steps):
        gram_MM = x_MN @ x_MN.mT
        x_MN = A * x_MN + (B * gram_MM + C * gram_MM @ gram_MM) @ x_MN
    return x_MN.mT if matrix_MN.shape[0] > matrix_MN.shape[1] else x_MN


def scale(matrix_MN: Tensor, params: Muon) -> float:
    """0.2 sqrt(max(M, N)), with which the entries are about as large as AdamW's (Liu et al. 2025, arXiv:2502.16982);
    or sqrt(max(1, M / N)), the original's."""
    rows, columns = matrix_MN.shape
    return float(0.2 * max(rows, columns) ** 0.5) if params.match_adam else float(max(1.0, rows / columns) ** 0.5)
