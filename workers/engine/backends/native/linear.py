"""Frozen products by our kernel, with adapters inside."""

from collections.abc import Sequence

from torch import Tensor

from workers.engine.adapters.rows import DropoutFunction
from workers.engine.backends.native.adapter_table import AdapterTable
from workers.engine.backends.native.packed_adapter import PackedAdapter
from workers.engine.backends.pass_adapters import PassAdapters
from workers.engine.backends.torch.linear import low_rank_grads
from workers.engine.kernels.packed_linear import PackedLinear


class NativeLinear:
    """As FrozenLinear. W is held in panels and nowhere else; a sum is rounded once to the dtype of x."""

    is_packed = True

    def __init__(self, packed: PackedLinear, dropout: DropoutFunction) -> None:
        self.packed, self._dropout = packed, dropout
        self.inputs, self.outputs = packed.inputs, packed.outputs

    def product(self, x_MI: Tensor, plus_MO: Tensor | None = None) -> Tensor:
        return self.packed.product(x_MI, plus_MO)

    def dense(self) -> Tensor:
        return self.packed.dense()

    def rows(self, index_N: Tensor) -> Tensor:
        return self.packed.rows(index_N)

    def transposed(self) -> PackedLinear:
        return self.packed.transposed()

    def adapted(
        self, x_TI: Tensor, adapters: PassAdapters, group: int, plus_TO: Tensor | None
    ) -> tuple[Tensor, Sequence[Tensor]]:
        table = adapters.layout(AdapterTable, x_TI.dtype, False).of(group)
        adapter_x_TI = x_TI
        if any(rows.dropout for rows in adapters.rows):
            adapter_x_TI = x_TI.clone()
            for rows in adapters.rows:
                rows.of(adapter_x_TI).copy_(rows.apply_dropout(rows.of(x_TI), group, self._dropout))
        y_TO, h_TS = self.packed.adapted(x_TI, adapter_x_TI, plus_TO, table)
        return y_TO, _of_adapters(h_TS, adapters, group)

    def adapted_backward(
        self, grad_TO: Tensor, adapters: PassAdapters, group: int, of_input: bool
    ) -> tuple[Tensor | None, Sequence[Tensor]]:
        dtype = grad_TO.dtype
        if not of_input:
            return None, [grad_NS.to(dtype) for grad_NS in low_rank_grads(grad_TO, adapters, group)]
        table = adapters.layout(AdapterTable, dtype, True).of(group)
        grad_TI, grad_TS = self.packed.transposed().adapted(grad_TO, grad_TO, None, table)
        for rows in adapters.rows:
            if rows.dropout:
                last = rows.adapter.low_rank.layout(PackedAdapter, dtype, True).groups[group].b.linear()
                part_NI = last.product(rows.of(grad_TS)[:, : last.inputs])
                rows.of(grad_TI).add_(rows.apply_dropout(part_NI, group, self._dropout))
        return grad_TI, _of_adapters(grad_TS, adapters, group)


def _of_adapters(h_TS: Tensor, adapters: PassAdapters, group: int) -> list[Tensor]:
    """Each adapter's rows, of as many columns as its A has outputs."""
    return [rows.of(h_TS)[:, : len(rows.adapter.matrices[group].A)] for rows in adapters.rows]
