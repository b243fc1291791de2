"""The gated activation of Llama's MLP (Shazeer 2020, arXiv:2002.05202)."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import silu


def swiglu(gate_up_TF: Tensor) -> Tensor:
    """silu(gate) * up, of gate and up side by side: [T, 2 F] -> [T, F]."""
    if not torch.is_grad_enabled():
        return _activated(gate_up_TF)
    y_TF: Tensor = _SwiGlu.apply(gate_up_TF)
    return y_TF


class _SwiGlu(torch.autograd.Function):
    """Keeps its input alone, where autograd would keep silu(gate) too."""

    @staticmethod
    def forward(ctx: Any, gate_up_TF: Tensor) -> Tensor:
        ctx.save_for_backward(gate_up_TF)
        return _activated(gate_up_TF)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        (gate_up_TF,) = ctx.saved_tensors
        gate, up = gate_up_TF.chunk(2, -1)
        slope_TF = torch.empty_like(gate_up_TF)
        gate_slope, up_slope = slope_TF.chunk(2, -1)
        torch.mul(silu(gate), grads[0], out=up_slope)
        gate_slope.copy_(torch.ops.aten.silu_backward(grads[0] * up, gate))
        return slope_TF


def _activated(gate_up_TF: Tensor) -> Tensor:
    gate, up = gate_up_TF.chunk(2, -1)
    return silu(gate).mul_(up)
