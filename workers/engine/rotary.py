"""Rotary position embedding (Su et al. 2021, arXiv:2104.09864), with a vector's halves as the pairs that turn."""

from typing import Any

import torch
from torch import Tensor

from workers.engine.kernels.kernel import Kernel, have_kernels
from workers.engine.kernels.strides import by_token

_TURN = Kernel("rotary", "pnppnpnnnnx")


class Rotation:
    """By each token's own angles: of their cosines and sines, each [T, C]."""

    def __init__(self, cos_TC: Tensor, sin_TC: Tensor) -> None:
        formula = _Native if have_kernels(cos_TC.device, cos_TC.dtype) else _Plain
        self._formula = formula(cos_TC, sin_TC)

    @property
    def tables(self) -> tuple[Tensor, Tensor, int]:
        """Cosines and sines as our kernels read them, and the stride from token to token."""
        assert isinstance(self._formula, _Native)
        return self._formula.tables

    def __call__(self, x_THD: Tensor) -> Tensor:
        """Each head's vector, D = 2 C, turned."""
        if not torch.is_grad_enabled():
            return self._formula.turned(x_THD)
        y_THD: Tensor = _Rotate.apply(x_THD, self._formula)
        return y_THD


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
        cos_TC, sin_TC = by_token(cos_TC), by_token(sin_TC)
        assert cos_TC.stride() == sin_TC.stride()
        self.tables = cos_TC, sin_TC, cos_TC.stride(0)

    def turned(self, x_THD: Tensor, back: bool = False) -> Tensor:
        x_THD = by_token(x_THD)
        y_THD = torch.empty_like(x_THD, memory_format=torch.contiguous_format)
        length, heads, size = x_THD.shape
        sign = -1.0 if back else 1.0
        _TURN(y_THD.dtype, x_THD, x_THD.stride(0), *self.tables, y_THD, heads * size, length, heads, size // 2, sign)
        return y_THD


class _Plain:
    def __init__(self, cos_TC: Tensor, sin_TC: Tensor) -> None:
        self._cos_T11C = cos_TC[:, None, None]
        self._sin_T12C = torch.stack([-sin_TC, sin_TC], 1)[:, None]

    def turned(self, x_THD: Tensor, back: bool = False) -> Tensor:
        halves_TH2C = x_THD.view(*x_THD.shape[:2], 2, -1)
        y_TH2C = halves_TH2C * self._cos_T11C
        return y_TH2C.addcmul_(halves_TH2C.flip(2), self._sin_T12C, value=-1 if back else 1).view(x_THD.shape)
