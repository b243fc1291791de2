"""Rotary position embedding (Su et al. 2021, arXiv:2104.09864), with a vector's halves as the pairs that turn."""

from typing import Any

import torch
from torch import Tensor

from workers.engine.kernels import functional
from workers.engine.kernels.kernel import have_kernels


class Rotation:
    """By each token's own angles: of their cosines and sines, each [T, C]."""

    def __init__(self, cos_TC: Tensor, sin_TC: Tensor) -> None:
        formula = _Native if have_kernels(cos_TC.device, cos_TC.dtype) else _Plain
        self._formula = formula(cos_TC, sin_TC)

    @property
    def tables(self) -> tuple[Tensor, Tensor]:
        """Cosines and sines, for our kernels."""
        assert isinstance(self._formula, _Native)
        return self._formula.tables

    def __call__(self, x_THD: Tensor) -> Tensor:
        """Each head's vector, D = 2 C, turned."""
        if not torch.is_grad_enabled():
            return self._formula.turned(x_THD)
        y_THD: Tensor = _Rotate.apply(x_THD, self._formula)
        return y_THD

    def split(self, qkv_THD: Tensor, heads: int, kv_heads: int) -> tuple[Tensor, Tensor, Tensor]:
        """q and k turned and v as it is, of all three side by side: one slope for them, put together once."""
        if not torch.is_grad_enabled():
            return _split(self._formula, qkv_THD, heads, kv_heads)
        parts: tuple[Tensor, Tensor, Tensor] = _RotateAndSplit.apply(qkv_THD, self._formula, heads, kv_heads)
        return parts


class _RotateAndSplit(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, qkv_THD: Tensor, formula: "_Native | _Plain", heads: int, kv_heads: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        ctx.formula, ctx.sizes = formula, (heads, kv_heads, kv_heads)
        return _split(formula, qkv_THD, heads, kv_heads)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        length, _, size = grads[0].shape
        slope_THD = grads[0].new_empty(length, sum(ctx.sizes), size)
        q, k, v = slope_THD.split(ctx.sizes, 1)
        ctx.formula.turned(grads[0], back=True, out=q)
        ctx.formula.turned(grads[1], back=True, out=k)
        v.copy_(grads[2])
        return slope_THD, None, None, None


def _split(formula: "_Native | _Plain", qkv_THD: Tensor, heads: int, kv_heads: int) -> tuple[Tensor, Tensor, Tensor]:
    qk_THD, v_TKD = qkv_THD.split([heads + kv_heads, kv_heads], 1)
    q_THD, k_TKD = formula.turned(qk_THD).split([heads, kv_heads], 1)
    return q_THD, k_TKD, v_TKD


class _Rotate(torch.autograd.Function):
    """The slope of a rotation is the rotation back."""

    @staticmethod
    def forward(ctx: Any, x_THD: Tensor, formula: "_Native | _Plain") -> Tensor:
        ctx.formula = formula
        return formula.turned(x_THD)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return ctx.formula.turned(grads[0], back=True), None


class _Native:
    """In fp32, rounded once."""

    def __init__(self, cos_TC: Tensor, sin_TC: Tensor) -> None:
        self.tables = cos_TC, sin_TC

    def turned(self, x_THD: Tensor, back: bool = False, out: Tensor | None = None) -> Tensor:
        return functional.rotary(x_THD, *self.tables, back, out)


class _Plain:
    def __init__(self, cos_TC: Tensor, sin_TC: Tensor) -> None:
        self._cos_T11C = cos_TC[:, None, None]
        self._sin_T12C = torch.stack([-sin_TC, sin_TC], 1)[:, None]

    def turned(self, x_THD: Tensor, back: bool = False, out: Tensor | None = None) -> Tensor:
        halves_TH2C = x_THD.unflatten(2, (2, -1))
        y_TH2C = halves_TH2C * self._cos_T11C
        y_THD = y_TH2C.addcmul_(halves_TH2C.flip(2), self._sin_T12C, value=-1 if back else 1).view(x_THD.shape)
        return y_THD if out is None else out.copy_(y_THD)
