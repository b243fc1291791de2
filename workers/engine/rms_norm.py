"""Root mean square normalisation (Zhang and Sennrich 2019, arXiv:1910.07467)."""

from typing import Any

import torch
from torch import Tensor


class RmsNorm:
    """x / sqrt(mean(x^2) + eps) * w over the last dimension, in fp32, rounded once to the dtype of x; w is frozen."""

    def __init__(self, weight_D: Tensor, eps: float) -> None:
        self.weight_D = weight_D.detach().float().clone()
        self._eps = torch.tensor(eps, device=weight_D.device)

    def __call__(self, x: Tensor) -> Tensor:
        if not torch.is_grad_enabled():
            return self.normalised(x)[0]
        y: Tensor = _RmsNorm.apply(x, self)
        return y

    def normalised(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The result, and 1 / sqrt(mean(x^2) + eps)."""
        wide = x.float()
        norm = torch.linalg.vector_norm(wide, dim=-1, keepdim=True)
        inverse = torch.addcmul(self._eps, norm, norm, value=1 / x.shape[-1]).rsqrt_()
        return (wide * inverse).mul_(self.weight_D).to(x.dtype), inverse


class _RmsNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, layer: RmsNorm) -> Tensor:
        y, inverse = layer.normalised(x)
        ctx.save_for_backward(x, inverse)
        ctx.weight_D = layer.weight_D
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        x, inverse = ctx.saved_tensors
        unit, slope = x.float() * inverse, grads[0].float() * ctx.weight_D
        along = torch.linalg.vecdot(unit, slope).unsqueeze(-1).div_(x.shape[-1])
        return slope.sub_(unit.mul_(along)).mul_(inverse).to(x.dtype), None
