"""Rotary position embedding (Su et al. 2021, arXiv:2104.09864), with a vector's halves as the pairs that turn."""

from typing import Any

import torch
from torch import Tensor


def rotate(x_THD: Tensor, cos_T1C: Tensor, sin_T1C: Tensor) -> Tensor:
    """Each head's vector, D = 2 C, turned by its token's angles."""
    if not torch.is_grad_enabled():
        return _turned(x_THD, cos_T1C, sin_T1C, 1)
    y_THD: Tensor = _Rotation.apply(x_THD, cos_T1C, sin_T1C)
    return y_THD


class _Rotation(torch.autograd.Function):
    """The slope of a rotation is the rotation back."""

    @staticmethod
    def forward(ctx: Any, x_THD: Tensor, cos_T1C: Tensor, sin_T1C: Tensor) -> Tensor:
        ctx.cos_T1C, ctx.sin_T1C = cos_T1C, sin_T1C
        return _turned(x_THD, cos_T1C, sin_T1C, 1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        return _turned(grads[0], ctx.cos_T1C, ctx.sin_T1C, -1), None, None


def _turned(x_THD: Tensor, cos_T1C: Tensor, sin_T1C: Tensor, direction: int) -> Tensor:
    first, second = x_THD.chunk(2, -1)
    y_THD = torch.empty_like(x_THD, memory_format=torch.contiguous_format)
    y_first, y_second = y_THD.chunk(2, -1)
    torch.mul(first, cos_T1C, out=y_first).addcmul_(second, sin_T1C, value=-direction)
    torch.mul(second, cos_T1C, out=y_second).addcmul_(first, sin_T1C, value=direction)
    return y_THD
