"""Matrices in the layout that the product's kernel reads: panels of 32 outputs, input after input."""

import torch
from torch import Tensor
from torch.nn.functional import pad

PANEL = 32


def inputs_per_step(dtype: torch.dtype) -> int:
    """Inputs that lie side by side for each output of a panel: bf16 is multiplied in pairs."""
    return 2 if dtype is torch.bfloat16 else 1


def panels(weight_OI: Tensor) -> Tensor:
    """[P, I / step, 32, step] of a [O, I] whose I is a multiple of the step; missing outputs are zeros."""
    step = inputs_per_step(weight_OI.dtype)
    filled_OI = pad(weight_OI, (0, 0, 0, -len(weight_OI) % PANEL))
    return filled_OI.view(-1, PANEL, weight_OI.shape[1] // step, step).permute(0, 2, 1, 3).contiguous()


def dense(panels_PIOS: Tensor, outputs: int) -> Tensor:
    """A copy [O, I]."""
    return panels_PIOS.permute(0, 2, 1, 3).reshape(len(panels_PIOS) * PANEL, -1)[:outputs]


def rows(panels_PIOS: Tensor, index_N: Tensor) -> Tensor:
    """Rows `index_N` of the matrix, [N, I]."""
    return panels_PIOS[index_N // PANEL, :, index_N % PANEL].flatten(1)
