"""Norm, rotary position embedding and gated activation by torch's operations."""

from functools import cache

import torch
from torch import Tensor
from torch.nn.functional import silu


def rms_norm(x: Tensor, weight_D: Tensor, eps: float) -> Tensor:
    return _unit(x.float(), eps)[0].mul_(weight_D).to(x.dtype)


def rms_norm_backward(x: Tensor, grad: Tensor, weight_D: Tensor, eps: float) -> Tensor:
    (unit, inverse), x_grad = _unit(x.float(), eps), grad.float() * weight_D
    along = torch.linalg.vecdot(unit, x_grad).unsqueeze(-1).div_(x.shape[-1])
    return x_grad.sub_(unit.mul_(along)).mul_(inverse).to(x.dtype)


def _unit(wide: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """x / sqrt(mean(x^2) + eps), and what it was multiplied with."""
    norm = torch.linalg.vector_norm(wide, dim=-1, keepdim=True)
    inverse = torch.addcmul(_scalar(eps, wide.device), norm, norm, value=1 / wide.shape[-1]).rsqrt_()
    return wide * inverse, inverse


@cache
def _scalar(value: float, device: torch.device) -> Tensor:
    return torch.tensor(value, device=device)


class Rotary:
    def __init__(self, cos_TC: Tensor, sin_TC: Tensor) -> None:
        self._cos_T11C = cos_TC[:, None, None]
        self._sin_T12C = torch.stack([-sin_TC, sin_TC], 1)[:, None]

    def __call__(self, x_THD: Tensor, back: bool = False, out: Tensor | None = None) -> Tensor:
        halves_TH2C = x_THD.unflatten(2, (2, -1))
        y_TH2C = halves_TH2C * self._cos_T11C
        y_THD = y_TH2C.addcmul_(halves_TH2C.flip(2), self._sin_T12C, value=-1 if back else 1).view(x_THD.shape)
        return y_THD if out is None else out.copy_(y_THD)


def swiglu(gate_up_TF: Tensor) -> Tensor:
    gate, up = gate_up_TF.chunk(2, -1)
    return silu(gate).mul_(up)


def swiglu_backward(gate_up_TF: Tensor, grad_TF: Tensor) -> Tensor:
    gate, up = gate_up_TF.chunk(2, -1)
    by_both_TF = torch.empty_like(gate_up_TF)
    gate_grad, up_grad = by_both_TF.chunk(2, -1)
    torch.mul(silu(gate), grad_TF, out=up_grad)
    gate_grad.copy_(torch.ops.aten.silu_backward(grad_TF * up, gate))
    return by_both_TF
