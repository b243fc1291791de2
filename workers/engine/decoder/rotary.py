"""Rotary position embedding (Su et al. 2021, arXiv:2104.09864), with a vector's halves as the pairs that rotate."""

from typing import Any

import torch
from torch import Tensor

from workers.engine.backends.backend import Backend, Rotate


class Rotation:
    """By each token's own angles: of their cosines and sines, each [T, C]."""

    def __init__(self, cos_TC: Tensor, sin_TC: Tensor, backend: Backend) -> None:
        self.cos_TC, self.sin_TC = cos_TC, sin_TC
        self._rotate = backend.rotary(cos_TC, sin_TC)

    def __call__(self, x_THD: Tensor) -> Tensor:
        """Each head's vector, D = 2 C, rotated."""
        if not torch.is_grad_enabled():
            return self._rotate(x_THD)
        y_THD: Tensor = _Rotate.apply(x_THD, self._rotate)
        return y_THD

    def split(self, qkv_THD: Tensor, heads: int, kv_heads: int) -> tuple[Tensor, Tensor, Tensor]:
        """q and k rotated and v as it is, of all three side by side; their gradient is put together once."""
        if not torch.is_grad_enabled():
            return _split(self._rotate, qkv_THD, heads, kv_heads)
        parts: tuple[Tensor, Tensor, Tensor] = _RotateAndSplit.apply(qkv_THD, self._rotate, heads, kv_heads)
        return parts


class _Rotate(torch.autograd.Function):
    """The gradient of a rotation is the rotation back."""

    @staticmethod
    def forward(ctx: Any, x_THD: Tensor, rotate: Rotate) -> Tensor:
        ctx.rotate = rotate
        return rotate(x_THD)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return ctx.rotate(grads[0], back=True), None


class _RotateAndSplit(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, qkv_THD: Tensor, rotate: Rotate, heads: int, kv_heads: int) -> tuple[Tensor, Tensor, Tensor]:
        ctx.rotate, ctx.sizes = rotate, (heads, kv_heads, kv_heads)
        return _split(rotate, qkv_THD, heads, kv_heads)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        length, _, size = grads[0].shape
        grad_THD = grads[0].new_empty(length, sum(ctx.sizes), size)
        q, k, v = grad_THD.split(ctx.sizes, 1)
        ctx.rotate(grads[0], back=True, out=q)
        ctx.rotate(grads[1], back=True, out=k)
        v.copy_(grads[2])
        return grad_THD, None, None, None


def _split(rotate: Rotate, qkv_THD: Tensor, heads: int, kv_heads: int) -> tuple[Tensor, Tensor, Tensor]:
    qk_THD, v_TKD = qkv_THD.split([heads + kv_heads, kv_heads], 1)
    q_THD, k_TKD = rotate(qk_THD).split([heads, kv_heads], 1)
    return q_THD, k_TKD, v_TKD
