"""The frozen product as our kernel computes it, with adapters inside."""

import numpy as np
from torch import Tensor
from torch.nn.functional import pad

from workers.engine.kernels.binding import Kernel
from workers.engine.kernels.huge_pages import HugePages
from workers.engine.kernels.interface import record
from workers.engine.kernels.panels import PANEL, dense, inputs_per_step, panels, rows

ADAPTER_ROWS = record("AdapterRows")

_weights = HugePages()

_product, _transpose = Kernel("product"), Kernel("transpose")


class PackedLinear:
    """W x + b outside of autograd, W in panels and nowhere else; a row's result has the same bits in any batch."""

    def __init__(self, panels_PIOS: Tensor, outputs: int, bias_O: Tensor | None = None) -> None:
        self._panels, self.outputs = panels_PIOS, outputs
        self.inputs = panels_PIOS.shape[1] * panels_PIOS.shape[3]
        self._bias = None if bias_O is None else pad(bias_O.float(), (0, -outputs % PANEL))

    @classmethod
    def of(cls, weight_OI: Tensor, bias_O: Tensor | None) -> "PackedLinear":
        return cls(_weights.copy(panels(weight_OI)), len(weight_OI), bias_O)

    @staticmethod
    def can_take(weight_OI: Tensor) -> bool:
        """Whether its sizes fit the layout."""
        step = inputs_per_step(weight_OI.dtype)
        return all(size % step == 0 for size in weight_OI.shape)

    def transposed(self) -> "PackedLinear":
        """x -> W^T x: a copy, for the gradients of a backward pass."""
        _, steps, _, step = self._panels.shape
        transposed = self._panels.new_empty(-(-steps * step // PANEL), self.outputs // step, PANEL, step)
        _transpose(transposed.dtype, w=self._panels, transposed=transposed, outputs=self.outputs, inputs=self.inputs)
        return PackedLinear(transposed, self.inputs)

    @property
    def addresses(self) -> tuple[int, int]:
        """Of the panels, and of the bias or 0."""
        return self._panels.data_ptr(), 0 if self._bias is None else self._bias.data_ptr()

    def product(self, x_MI: Tensor, plus_MO: Tensor | None = None) -> Tensor:
        """W x + b + plus, [M, inputs] -> [M, outputs], rounded once."""
        return self.adapted(x_MI, x_MI, plus_MO, base_alone(len(x_MI)))[0]

    def adapted(
        self, x_MI: Tensor, adapter_x_MI: Tensor, plus_MO: Tensor | None, adapter_rows: np.ndarray
    ) -> tuple[Tensor, Tensor]:
        """W x + b + plus + B h, rounded once, and h = A adapter_x [M, largest width]; `adapter_rows` [N]."""
        # The kernel would read past the end.
        assert x_MI.dtype is self._panels.dtype and x_MI.shape[1] == self.inputs
        width = int(adapter_rows["width"].max())
        x_MI, adapter_x_MI = x_MI.contiguous(), adapter_x_MI.contiguous()
        plus_MO = None if plus_MO is None else plus_MO.contiguous()
        y_MO, h_MS = x_MI.new_empty(len(x_MI), self.outputs), x_MI.new_empty(len(x_MI), width)
        _product(
            self._panels.dtype, x=x_MI, adapter_x=adapter_x_MI, w=self._panels, bias=self._bias, plus=plus_MO, y=y_MO,
            h=h_MS, length=len(x_MI), inputs=self.inputs, outputs=self.outputs, h_width=width,
            adapter_rows=adapter_rows,
        )  # fmt: skip
        return y_MO, h_MS

    def dense(self) -> Tensor:
        """A copy of W [outputs, inputs]."""
        return dense(self._panels, self.outputs)

    def rows(self, index_N: Tensor) -> Tensor:
        """Rows of W, [N, inputs]."""
        return rows(self._panels, index_N)


def base_alone(length: int) -> np.ndarray:
    """The ADAPTER_ROWS of a pass without adapters."""
    adapter_rows = np.zeros(1, ADAPTER_ROWS)
    adapter_rows["stop"] = length
    return adapter_rows
