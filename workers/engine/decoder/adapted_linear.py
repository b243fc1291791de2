"""LoRA on frozen products, several adapters in one pass (Hu et al. 2021, arXiv:2106.09685)."""

from typing import Any

import torch
from torch import Tensor

from workers.engine.adapters.layout import Matrices
from workers.engine.backends.backend import Backend, FrozenLinear
from workers.engine.backends.pass_adapters import PassAdapters
from workers.engine.decoder.forward_pass import ForwardPass


class AdaptedLinear:
    """y = W x + scale * B A dropout(x) for each row's own A and B, and one W for all.

    W may be those of several layers below each other: a group, as which the adapters know it.
    """

    def __init__(self, base: FrozenLinear, group: int, backend: Backend) -> None:
        self.base, self.group, self.backend = base, group, backend

    def __call__(self, x_TI: Tensor, forward_pass: ForwardPass, plus_TO: Tensor | None = None) -> Tensor:
        """[T, inputs] -> [T, outputs]; `plus` is added to it."""
        adapters = forward_pass.adapters
        if not torch.is_grad_enabled():
            return self.base.adapted(x_TI, adapters, self.group, plus_TO)[0]
        leaves = [leaf for rows in adapters.rows for leaf in rows.adapter.matrices[self.group].leaves]
        y_TO: Tensor = _AdaptedProduct.apply(x_TI, plus_TO, self, adapters, *leaves)
        return y_TO


class _AdaptedProduct(torch.autograd.Function):
    """Keeps x and the few numbers between A and B; dropout masks are drawn again."""

    @staticmethod
    def forward(
        ctx: Any, x_TI: Tensor, plus_TO: Tensor | None, layer: AdaptedLinear, adapters: PassAdapters, *leaves: Tensor
    ) -> Tensor:
        y_TO, hs = layer.base.adapted(x_TI, adapters, layer.group, plus_TO)
        # The leaves too, so that autograd sees a weight that was changed in between.
        ctx.save_for_backward(x_TI, *hs, *leaves)
        ctx.layer, ctx.adapters = layer, adapters
        return y_TO

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        layer: AdaptedLinear = ctx.layer
        adapters: PassAdapters = ctx.adapters
        group, backend = layer.group, layer.backend
        x_TI, *hs = ctx.saved_tensors[: 1 + len(adapters.rows)]
        grad_TI, h_grads = layer.base.adapted_backward(grads[0], adapters, group, of_input=ctx.needs_input_grad[0])
        leaf_grads: list[Tensor] = []
        for rows, h_NS, grad_NS in zip(adapters.rows, hs, h_grads, strict=True):
            x_NI, grad_NO = rows.apply_dropout(rows.of(x_TI), group, backend.dropout), rows.of(grads[0])
            leaf_grads.append(backend.outer(grad_NS, x_NI, rows.adapter.scale))
            leaf_grads += _b_grads(backend, h_NS, grad_NO, rows.adapter.matrices[group])
        return grad_TI, grads[0] if ctx.needs_input_grad[1] else None, None, None, *leaf_grads


def _b_grads(backend: Backend, h_NS: Tensor, grad_NO: Tensor, matrices: Matrices) -> list[Tensor]:
    """Of each B, from its own columns of h and of the gradient by the result."""
    columns = grad_NO.split([len(b) for b in matrices.Bs], 1)
    return [backend.outer(h, grad).T for h, grad in zip(h_NS.chunk(len(matrices.Bs), 1), columns, strict=True)]
