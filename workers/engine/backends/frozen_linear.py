"""y = x W^T + b with a W that never changes: laid out once for the kernels that read it."""

import os
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import linear

from workers.engine.kernels.packed_linear import PackedLinear

# The layout is the same for any batch; this only tells oneDNN that batches are not of one row.
TYPICAL_ROWS = 64

# oneDNN reads this at its first product. With AMX it sums a row of bf16 in an order that depends on how many others
# there are (docs/decisions/0032-without-kernels.md).
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")


class FrozenLinear:
    """A frozen linear layer [outputs, inputs], outside of autograd.

    On a CPU it holds W in a layout for our own kernel, or for oneDNN's where that cannot be had, and nothing else. A
    row of the result is bit for bit the same in any batch.
    """

    def __init__(self, weight_OI: Tensor, bias_O: Tensor | None = None) -> None:
        self.outputs, self.inputs = weight_OI.shape
        weight_OI, bias_O = weight_OI.detach(), None if bias_O is None else bias_O.detach()
        self.packed = PackedLinear.of(weight_OI, bias_O) if PackedLinear.can_take(weight_OI) else None
        self._plain = None if self.packed else _Plain(weight_OI, bias_O)

    def product(self, x_MI: Tensor, plus_MO: Tensor | None = None) -> Tensor:
        """W x + b + plus, [M, inputs] -> [M, outputs]; on a CPU rounded once."""
        return self._layer.product(x_MI, plus_MO)

    def dense(self) -> Tensor:
        """W [outputs, inputs]: a copy, where it is packed."""
        return self._layer.dense()

    def transposed(self) -> "PackedLinear | _Transposed":
        """For slopes, whose `product` is grad W + plus: [M, outputs] -> [M, inputs]. Where W is packed this is a copy
        of it, little beside a product of the hundreds of rows that training has."""
        return self.packed.transposed() if self.packed else _Transposed(self.dense())

    @property
    def _layer(self) -> "PackedLinear | _Plain":
        layer = self.packed or self._plain
        assert layer
        return layer


class _Plain:
    """By torch's operations: oneDNN's on a CPU. W is held in the dtype that products are computed in."""

    def __init__(self, weight_OI: Tensor, bias_O: Tensor | None) -> None:
        self._dtype, self._wide = weight_OI.dtype, computed_in(weight_OI.device, weight_OI.dtype)
        self._is_reordered = is_fast(weight_OI.device, self._wide)
        weight_OI = weight_OI.to(self._wide)
        reorder = torch.ops.mkldnn._reorder_linear_weight
        self._weight = reorder(weight_OI, TYPICAL_ROWS) if self._is_reordered else weight_OI
        self._bias_O = None if bias_O is None else bias_O.to(self._wide, copy=True)

    def product(self, x_MI: Tensor, plus_MO: Tensor | None) -> Tensor:
        assert x_MI.dtype is self._dtype
        method = _onednn if self._is_reordered else _linear
        plus_MO = None if plus_MO is None else plus_MO.to(self._wide)
        return method(x_MI.to(self._wide), self._weight, self._bias_O, plus_MO).to(self._dtype)

    def dense(self) -> Tensor:
        return (self._weight.to_dense() if self._is_reordered else self._weight).to(self._dtype)


@dataclass(frozen=True)
class _Transposed:
    weight_OI: Tensor

    def product(self, grad_MO: Tensor, plus_MI: Tensor | None = None) -> Tensor:
        return grad_product(grad_MO, self.weight_OI, plus_MI).to(grad_MO.dtype)


def grad_product(grad_MO: Tensor, weight_OI: Tensor, plus_MI: Tensor | None = None) -> Tensor:
    """grad W + plus of plain matrices, otherwise as `product`. A gradient is not asked to have the same bits in any
    batch, so that in fp32 BLAS may compute it, which reads W as it lies; oneDNN takes up to 1.7 times as long."""
    dtype = computed_in(grad_MO.device, grad_MO.dtype)
    if dtype is not torch.float32:
        return product(grad_MO, weight_OI.T, plus_MI)
    grad_MO, weight_OI = grad_MO.to(dtype), weight_OI.to(dtype)
    return grad_MO @ weight_OI if plus_MI is None else torch.addmm(plus_MI.to(dtype), grad_MO, weight_OI)


def product(x_MI: Tensor, weight_OI: Tensor, plus_MO: Tensor | None = None) -> Tensor:
    """x W^T + plus of plain matrices in any layout, outside of autograd, in the dtype that it is computed in: whoever
    adds it to something else need not round it before."""
    dtype = computed_in(x_MI.device, x_MI.dtype)
    plus_MO = None if plus_MO is None else plus_MO.to(dtype)
    method = _onednn if is_fast(x_MI.device, dtype) else _linear
    return method(x_MI.to(dtype), weight_OI.to(dtype), None, plus_MO)


def computed_in(device: torch.device, dtype: torch.dtype) -> torch.dtype:
    """What products of a dtype are summed in, and added to, before they are rounded to it: fp32 on a CPU without
    instructions for bf16, where torch's own would round a sum before something is added to it."""
    return torch.float32 if device.type == "cpu" and not is_fast(device, dtype) else dtype


def is_fast(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether oneDNN has products of this dtype for this CPU."""
    if device.type != "cpu" or not torch.backends.mkldnn.is_available():
        return False
    return dtype is torch.float32 or (dtype is torch.bfloat16 and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported()))


def _linear(x_MI: Tensor, weight_OI: Tensor, bias_O: Tensor | None, plus_MO: Tensor | None) -> Tensor:
    y_MO = linear(x_MI, weight_OI, bias_O)
    return y_MO if plus_MO is None else y_MO + plus_MO


def _onednn(x_MI: Tensor, weight: Tensor, bias_O: Tensor | None, plus_MO: Tensor | None) -> Tensor:
    if len(x_MI) == 1:
        # For one row alone oneDNN has another kernel, with sums in another order.
        twice = None if plus_MO is None else torch.cat([plus_MO, plus_MO])
        return _onednn(torch.cat([x_MI, x_MI]), weight, bias_O, twice)[:1]
    y_MO: Tensor
    if plus_MO is None:
        y_MO = torch.ops.mkldnn._linear_pointwise(x_MI, weight, bias_O, "none", [], "")
    else:
        y_MO = torch.ops.mkldnn._linear_pointwise.binary(x_MI, plus_MO, weight, bias_O, "add")
    return y_MO
