"""The gated activation of Llama's MLP (Shazeer 2020, arXiv:2002.05202)."""

from typing import Any

import torch
from torch import Tensor

from workers.engine.backends.backend import Backend


def swiglu(gate_up_TF: Tensor, backend: Backend) -> Tensor:
    """silu(gate) * up, of gate and up side by side: [T, 2 F] -> [T, F]."""
    if not torch.is_grad_enabled():
        return backend.swiglu(gate_up_TF)
    y_TF: Tensor = _SwiGlu.apply(gate_up_TF, backend)
    return y_TF


class _SwiGlu(torch.autograd.Function):
    """Keeps its input alone, where autograd would keep silu(gate) too."""

    @staticmethod
    def forward(ctx: Any, gate_up_TF: Tensor, backend: Backend) -> Tensor:
        ctx.save_for_backward(gate_up_TF)
        ctx.backend = backend
        return backend.swiglu(gate_up_TF)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (gate_up_TF,) = ctx.saved_tensors
        return ctx.backend.swiglu_backward(gate_up_TF, grads[0]), None
