"""Root mean square normalisation (Zhang and Sennrich 2019, arXiv:1910.07467)."""

from typing import Any

import torch
from torch import Tensor

from workers.engine.backends.backend import Backend


class RmsNorm:
    """x / sqrt(mean(x^2) + eps) * w over the last dimension, in fp32, rounded once to the dtype of x; w is frozen."""

    def __init__(self, weight_D: Tensor, eps: float, backend: Backend) -> None:
        self.weight_D, self.eps, self.backend = weight_D.detach().float().clone(), eps, backend

    def __call__(self, x: Tensor) -> Tensor:
        """Of [T, D] or [T, H, D]."""
        if not torch.is_grad_enabled():
            return self.backend.rms_norm(x, self.weight_D, self.eps)
        y: Tensor = _RmsNorm.apply(x, self)
        return y


class _RmsNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, norm: RmsNorm) -> Tensor:
        ctx.save_for_backward(x)
        ctx.norm = norm
        return norm.backend.rms_norm(x, norm.weight_D, norm.eps)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (x,), norm = ctx.saved_tensors, ctx.norm
        return norm.backend.rms_norm_backward(x, grads[0], norm.weight_D, norm.eps), None
