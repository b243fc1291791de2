"""Rotary position embedding (Su et al. 2021, arXiv:2104.09864), with a vector's halves as the pairs that turn."""

from typing import Any

import torch
from torch import Tensor


class Rotation:
    """By each token's own angles: of their cosines and sines, each [T, C]."""

    def __init__(self, cos_TC: Tensor, sin_TC: Tensor) -> None:
        self._cos_T11C = cos_TC[:, None, None]
        self._sin_T12C = torch.stack([-sin_TC, sin_TC], 1)[:, None]

    def __call__(self, x_THD: Tensor) -> Tensor:
        """Each head's vector, D = 2 C, turned."""
        if not torch.is_grad_enabled():
            return self.turned(x_THD)
        y_THD: Tensor = _Rotate.apply(x_THD, self)
        return y_THD

    def turned(self, x_THD: Tensor, back: bool = False) -> Tensor:
        """As `__call__`, outside of autograd; or by the angles backwards."""
        halves_TH2C = x_THD.view(*x_THD.shape[:2], 2, -1)
        y_TH2C = halves_TH2C * self._cos_T11C
        return y_TH2C.addcmul_(halves_TH2C.flip(2), self._sin_T12C, value=-1 if back else 1).view(x_THD.shape)


class _Rotate(torch.autograd.Function):
    """The slope of a rotation is the rotation back."""

    @staticmethod
    def forward(ctx: Any, x_THD: Tensor, rotation: Rotation) -> Tensor:
        ctx.rotation = rotation
        return rotation.turned(x_THD)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return ctx.rotation.turned(grads[0], back=True), None
