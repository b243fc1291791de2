"""Frozen products by torch's operations (oneDNN's on a CPU), with adapters as further products that are added."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from workers.engine.adapters.rows import AdapterRows, DropoutFunction
from workers.engine.backends.pass_adapters import PassAdapters
from workers.engine.backends.torch.operands import LoraOperands, Operand
from workers.engine.backends.torch.products import (
    computed_in,
    grad_product,
    is_fast,
    linear_by_onednn,
    linear_by_torch,
    product,
)

# The layout is the same for any batch; this only tells oneDNN that batches are not of one row.
TYPICAL_ROWS = 64


class TorchLinear:
    """As FrozenLinear. W is held in the dtype that products are computed in, on a CPU in oneDNN's layout.

    On a CPU the sum is rounded once to the dtype of x; but where oneDNN computes in bf16, B h and what is added are
    rounded before.
    """

    is_packed = False

    def __init__(self, weight_OI: Tensor, bias_O: Tensor | None, dropout: DropoutFunction) -> None:
        self.outputs, self.inputs = weight_OI.shape
        self._dropout = dropout
        weight_OI = weight_OI.detach()
        self._dtype, self._wide = weight_OI.dtype, computed_in(weight_OI.device, weight_OI.dtype)
        self._is_reordered = is_fast(weight_OI.device, self._wide)
        weight_OI = weight_OI.to(self._wide)
        reorder = torch.ops.mkldnn._reorder_linear_weight
        self._weight = reorder(weight_OI, TYPICAL_ROWS) if self._is_reordered else weight_OI
        self._bias_O = None if bias_O is None else bias_O.detach().to(self._wide, copy=True)

    def product(self, x_MI: Tensor, plus_MO: Tensor | None = None) -> Tensor:
        assert x_MI.dtype is self._dtype
        method = linear_by_onednn if self._is_reordered else linear_by_torch
        plus_MO = None if plus_MO is None else plus_MO.to(self._wide)
        return method(x_MI.to(self._wide), self._weight, self._bias_O, plus_MO).to(self._dtype)

    def dense(self) -> Tensor:
        return (self._weight.to_dense() if self._is_reordered else self._weight).to(self._dtype)

    def rows(self, index_N: Tensor) -> Tensor:
        return self.dense()[index_N]

    def transposed(self) -> "_Transposed":
        return _Transposed(self.dense())

    def adapted(
        self, x_TI: Tensor, adapters: PassAdapters, group: int, plus_TO: Tensor | None
    ) -> tuple[Tensor, Sequence[Tensor]]:
        if adapters.stacked:
            return self.product(x_TI, _sum(adapters.stacked.low_rank(x_TI, group), plus_TO)), ()
        operands = [_operand(rows, group, x_TI.dtype) for rows in adapters.rows]
        inputs = [rows.apply_dropout(rows.of(x_TI), group, self._dropout) for rows in adapters.rows]
        hs = [product(x_NI, operand.a_SI) for x_NI, operand in zip(inputs, operands, strict=True)]
        parts = [product(h_NS, operand.b_OS) for h_NS, operand in zip(hs, operands, strict=True)]
        return self.product(x_TI, _sum(_laid_out(parts, adapters), plus_TO)), hs

    def adapted_backward(
        self, grad_TO: Tensor, adapters: PassAdapters, group: int, of_input: bool
    ) -> tuple[Tensor | None, Sequence[Tensor]]:
        grads = low_rank_grads(grad_TO, adapters, group)
        if not of_input:
            return None, grads
        operands = [_operand(rows, group, grad_TO.dtype) for rows in adapters.rows]
        parts = [
            rows.apply_dropout(grad_product(grad_NS, operand.a_SI), group, self._dropout)
            for grad_NS, rows, operand in zip(grads, adapters.rows, operands, strict=True)
        ]
        return self.transposed().product(grad_TO, _laid_out(parts, adapters)), grads


@dataclass(frozen=True)
class _Transposed:
    weight_OI: Tensor

    def product(self, x_MI: Tensor, plus_MO: Tensor | None = None) -> Tensor:
        return grad_product(x_MI, self.weight_OI, plus_MO).to(x_MI.dtype)


def low_rank_grads(grad_TO: Tensor, adapters: PassAdapters, group: int) -> list[Tensor]:
    """The gradients by A dropout(x) of each adapter's rows, in the dtype that products are computed in."""
    return [grad_product(rows.of(grad_TO), _operand(rows, group, grad_TO.dtype).b_OS) for rows in adapters.rows]


def _operand(rows: AdapterRows, group: int, dtype: torch.dtype) -> Operand:
    return rows.adapter.low_rank.layout(LoraOperands, dtype)[group]


def _laid_out(parts: Sequence[Tensor], adapters: PassAdapters) -> Tensor | None:
    """Each adapter's part on its rows, 0 elsewhere; None when there is none."""
    if not parts or (len(parts) == 1 and len(parts[0]) == adapters.length):
        return parts[0] if parts else None
    whole = parts[0].new_zeros(adapters.length, parts[0].shape[1])
    for part, rows in zip(parts, adapters.rows, strict=True):
        rows.of(whole).copy_(part)
    return whole


def _sum(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    return b if a is None else a if b is None else a + b
