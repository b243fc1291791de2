"""LoRA on frozen products, several adapters in one pass (Hu et al. 2021, arXiv:2106.09685)."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from workers.engine.adapters.layout import Matrices
from workers.engine.adapters.rows import Route
from workers.engine.backends.frozen_linear import FrozenLinear, grad_product, product
from workers.engine.backends.native.packed_adapter import PackedAdapter
from workers.engine.backends.operands import LoraOperands, Operand
from workers.engine.backends.outer import outer
from workers.engine.decoder.forward_pass import ForwardPass


class AdaptedLinear:
    """y = W x + scale * B A dropout(x) for each row's own A and B, and one W for all.

    W may be those of several layers below each other: a group, as which the adapters know it. On a CPU the sum is
    rounded once to the base model's dtype; but where oneDNN computes in bf16, B h and what is added are rounded before.
    """

    def __init__(self, base: FrozenLinear, group: int) -> None:
        self.base = base
        self.group = group

    def __call__(self, x_TI: Tensor, forward_pass: ForwardPass, plus_TO: Tensor | None = None) -> Tensor:
        """[T, inputs] -> [T, outputs]; `plus` is added to it."""
        if not torch.is_grad_enabled():
            return self.product(x_TI, forward_pass, plus_TO)[0]
        leaves = [leaf for route in forward_pass.routes for leaf in route.adapter.matrices[self.group].leaves]
        y_TO: Tensor = _AdaptedProduct.apply(x_TI, plus_TO, self, forward_pass, *leaves)
        return y_TO

    def operand(self, route: Route, dtype: torch.dtype) -> Operand:
        return route.adapter.low_rank.layout(LoraOperands, dtype)[self.group]

    def product(
        self, x_TI: Tensor, forward_pass: ForwardPass, plus_TO: Tensor | None
    ) -> tuple[Tensor, Sequence[Tensor]]:
        """As `__call__`, outside of autograd; and scale * A x of each route's rows, where they are at hand."""
        if self.base.packed:
            return self._packed_product(x_TI, forward_pass, plus_TO)
        if forward_pass.crowd:
            return self.base.product(x_TI, _sum(forward_pass.crowd.low_rank(x_TI, self.group), plus_TO)), ()
        routes = forward_pass.routes
        operands = [self.operand(route, x_TI.dtype) for route in routes]
        inputs = [route.dropped(route.of(x_TI), self.group) for route in routes]
        hs = [product(x_NI, operand.a_SI) for x_NI, operand in zip(inputs, operands, strict=True)]
        parts = [product(h_NS, operand.b_OS) for h_NS, operand in zip(hs, operands, strict=True)]
        return self.base.product(x_TI, _sum(_laid_out(parts, routes, len(x_TI)), plus_TO)), hs

    def slopes(
        self, grad_TO: Tensor, forward_pass: ForwardPass, of_input: bool
    ) -> tuple[Tensor | None, Sequence[Tensor]]:
        """By x, where asked for; and by A x, of each route's rows."""
        if self.base.packed and of_input:
            return self._packed_slopes(grad_TO, forward_pass)
        routes = forward_pass.routes
        operands = [self.operand(route, grad_TO.dtype) for route in routes]
        grads = [grad_product(route.of(grad_TO), operand.b_OS) for route, operand in zip(routes, operands, strict=True)]
        if self.base.packed:
            return None, [grad_NS.to(grad_TO.dtype) for grad_NS in grads]
        if not of_input:
            return None, grads
        parts = [
            route.dropped(grad_product(grad_NS, operand.a_SI), self.group)
            for grad_NS, route, operand in zip(grads, routes, operands, strict=True)
        ]
        return self.base.transposed().product(grad_TO, _laid_out(parts, routes, len(grad_TO))), grads

    def _packed_product(
        self, x_TI: Tensor, forward_pass: ForwardPass, plus_TO: Tensor | None
    ) -> tuple[Tensor, Sequence[Tensor]]:
        assert self.base.packed
        routes, table = forward_pass.routes, forward_pass.packed_routes(x_TI.dtype).table(self.group)
        adapter_x_TI = x_TI
        if any(route.dropout for route in routes):
            adapter_x_TI = x_TI.clone()
            for route in routes:
                route.of(adapter_x_TI).copy_(route.dropped(route.of(x_TI), self.group))
        y_TO, h_TS = self.base.packed.adapted(x_TI, adapter_x_TI, plus_TO, table)
        return y_TO, self._of_routes(h_TS, routes)

    def _packed_slopes(self, grad_TO: Tensor, forward_pass: ForwardPass) -> tuple[Tensor, Sequence[Tensor]]:
        assert self.base.packed
        routes, table = forward_pass.routes, forward_pass.packed_routes(grad_TO.dtype, slopes=True).table(self.group)
        grad_TI, grad_TS = self.base.packed.transposed().adapted(grad_TO, grad_TO, None, table)
        for route in routes:
            if route.dropout:
                last = route.adapter.low_rank.layout(PackedAdapter, grad_TO.dtype, True).groups[self.group].b.linear()
                part_NI = last.product(route.of(grad_TS)[:, : last.inputs])
                route.of(grad_TI).add_(route.dropped(part_NI, self.group))
        return grad_TI, self._of_routes(grad_TS, routes)

    def _of_routes(self, h_TS: Tensor, routes: Sequence[Route]) -> list[Tensor]:
        """Each route's rows, of as many columns as its A has."""
        return [route.of(h_TS)[:, : len(route.adapter.matrices[self.group].A)] for route in routes]


class _AdaptedProduct(torch.autograd.Function):
    """Keeps x and the few numbers halfway; masks are drawn again."""

    @staticmethod
    def forward(
        ctx: Any, x_TI: Tensor, plus_TO: Tensor | None, layer: AdaptedLinear, forward_pass: ForwardPass, *leaves: Tensor
    ) -> Tensor:
        y_TO, hs = layer.product(x_TI, forward_pass, plus_TO)
        # The leaves too, so that autograd sees a weight that was changed in between.
        ctx.save_for_backward(x_TI, *hs, *leaves)
        ctx.layer, ctx.forward_pass = layer, forward_pass
        return y_TO

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        layer: AdaptedLinear = ctx.layer
        forward_pass: ForwardPass = ctx.forward_pass
        routes = forward_pass.routes
        x_TI, *hs = ctx.saved_tensors[: 1 + len(routes)]
        grad_TI, h_grads = layer.slopes(grads[0], forward_pass, of_input=ctx.needs_input_grad[0])
        leaf_grads: list[Tensor] = []
        for route, h_NS, grad_NS in zip(routes, hs, h_grads, strict=True):
            x_NI, grad_NO = route.dropped(route.of(x_TI), layer.group), route.of(grads[0])
            leaf_grads.append(outer(grad_NS, x_NI, route.adapter.scale))
            leaf_grads += _b_gradients(h_NS, grad_NO, route.adapter.matrices[layer.group])
        return grad_TI, grads[0] if ctx.needs_input_grad[1] else None, None, None, *leaf_grads


def _laid_out(parts: Sequence[Tensor], routes: Sequence[Route], length: int) -> Tensor | None:
    """Each route's part on its rows, 0 elsewhere; None when there is none."""
    if not parts or (len(parts) == 1 and len(parts[0]) == length):
        return parts[0] if parts else None
    whole = parts[0].new_zeros(length, parts[0].shape[1])
    for part, route in zip(parts, routes, strict=True):
        route.of(whole).copy_(part)
    return whole


def _b_gradients(h_NS: Tensor, grad_NO: Tensor, matrices: Matrices) -> list[Tensor]:
    """Of each B, from its own columns of h and of the gradient by the result."""
    columns = grad_NO.split([len(b) for b in matrices.Bs], 1)
    return [outer(h, grad).T for h, grad in zip(h_NS.chunk(len(matrices.Bs), 1), columns, strict=True)]


def _sum(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    return b if a is None else a if b is None else a + b
