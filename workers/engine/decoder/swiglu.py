"""The gated activation of Llama's MLP (Shazeer 2020, arXiv:2002.05202)."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import silu

from workers.engine.kernels import functional
from workers.engine.kernels.kernel import have_kernels


def swiglu(gate_up_TF: Tensor) -> Tensor:
    """silu(gate) * up, of gate and up side by side: [T, 2 F] -> [T, F]."""
    if not torch.is_grad_enabled():
        return _formula(gate_up_TF).activated(gate_up_TF)
    y_TF: Tensor = _SwiGlu.apply(gate_up_TF)
    return y_TF


class _SwiGlu(torch.autograd.Function):
    """Keeps its input alone, where autograd would keep silu(gate) too."""

    @staticmethod
    def forward(ctx: Any, gate_up_TF: Tensor) -> Tensor:
        ctx.save_for_backward(gate_up_TF)
        return _formula(gate_up_TF).activated(gate_up_TF)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        (gate_up_TF,) = ctx.saved_tensors
        return _formula(gate_up_TF).slope(gate_up_TF, grads[0])


class _Native:
    """In fp32, rounded once."""

    @staticmethod
    def activated(gate_up_TF: Tensor) -> Tensor:
        return functional.swiglu(gate_up_TF)

    @staticmethod
    def slope(gate_up_TF: Tensor, grad_TF: Tensor) -> Tensor:
        return functional.swiglu_backward(gate_up_TF, grad_TF)


class _Plain:
    @staticmethod
    def activated(gate_up_TF: Tensor) -> Tensor:
        gate, up = gate_up_TF.chunk(2, -1)
        return silu(gate).mul_(up)

    @staticmethod
    def slope(gate_up_TF: Tensor, grad_TF: Tensor) -> Tensor:
        gate, up = gate_up_TF.chunk(2, -1)
        slope_TF = torch.empty_like(gate_up_TF)
        gate_slope, up_slope = slope_TF.chunk(2, -1)
        torch.mul(silu(gate), grad_TF, out=up_slope)
        gate_slope.copy_(torch.ops.aten.silu_backward(grad_TF * up, gate))
        return slope_TF


def _formula(like: Tensor) -> type[_Native] | type[_Plain]:
    return _Native if have_kernels(like.device, like.dtype) else _Plain
