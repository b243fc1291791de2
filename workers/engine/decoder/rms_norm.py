"""Root mean square normalisation (Zhang and Sennrich 2019, arXiv:1910.07467)."""

from typing import Any, Protocol

import torch
from torch import Tensor

from workers.engine.kernels import functional
from workers.engine.kernels.kernel import have_kernels


class RmsNorm:
    """x / sqrt(mean(x^2) + eps) * w over the last dimension, in fp32, rounded once to the dtype of x; w is frozen."""

    def __init__(self, weight_D: Tensor, eps: float) -> None:
        formula = _Native if have_kernels(weight_D.device, weight_D.dtype) else _Plain
        self.weight_D, self.eps = weight_D.detach().float().clone(), eps
        self._formula = formula(self.weight_D, eps)

    def __call__(self, x: Tensor) -> Tensor:
        """Of [T, D] or [T, H, D]."""
        if not torch.is_grad_enabled():
            return self._formula.normalised(x)
        y: Tensor = _RmsNorm.apply(x, self._formula)
        return y


class _RmsNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, formula: "_Formula") -> Tensor:
        ctx.save_for_backward(x)
        ctx.formula = formula
        return formula.normalised(x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors
        return ctx.formula.slope(x, grads[0]), None


class _Formula(Protocol):
    def normalised(self, x: Tensor) -> Tensor: ...

    def slope(self, x: Tensor, grad: Tensor) -> Tensor:
        """Of a loss by x, from that by the result."""


class _Native:
    def __init__(self, weight_D: Tensor, eps: float) -> None:
        self._weight_D, self._eps = weight_D, eps

    def normalised(self, x: Tensor) -> Tensor:
        return functional.rms_norm(x, self._weight_D, self._eps)

    def slope(self, x: Tensor, grad: Tensor) -> Tensor:
        return functional.rms_norm_backward(x, grad, self._weight_D, self._eps)


class _Plain:
    def __init__(self, weight_D: Tensor, eps: float) -> None:
        self._weight_D, self._eps = weight_D, torch.tensor(eps, device=weight_D.device)

    def normalised(self, x: Tensor) -> Tensor:
        return self._unit(x.float())[0].mul_(self._weight_D).to(x.dtype)

    def slope(self, x: Tensor, grad: Tensor) -> Tensor:
        (unit, inverse), slope = self._unit(x.float()), grad.float() * self._weight_D
        along = torch.linalg.vecdot(unit, slope).unsqueeze(-1).div_(x.shape[-1])
        return slope.sub_(unit.mul_(along)).mul_(inverse).to(x.dtype)

    def _unit(self, wide: Tensor) -> tuple[Tensor, Tensor]:
        """x / sqrt(mean(x^2) + eps), and what it was multiplied with."""
        norm = torch.linalg.vector_norm(wide, dim=-1, keepdim=True)
        inverse = torch.addcmul(self._eps, norm, norm, value=1 / wide.shape[-1]).rsqrt_()
        return wide * inverse, inverse
