"""LoRA on frozen products, several adapters in one pass (Hu et al. 2021, arXiv:2106.09685)."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from workers.engine.adapter_layout import Matrices
from workers.engine.forward_pass import ForwardPass
from workers.engine.frozen_linear import FrozenLinear, product
from workers.engine.lora_operands import Operand
from workers.engine.routes import Route

TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


class AdaptedLinear:
    """y = W x + scale * B A dropout(x) for each row's own A and B, and one W for all.

    W may be those of several layers below each other: a group, as which the adapters know it. On a CPU the sum is
    rounded once to the base model's dtype.
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
        return route.adapter.operands.of(dtype)[self.group]

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
        return self.base.product(x_TI, _sum(_laid_out(parts, routes, x_TI), plus_TO)), hs

    def _packed_product(
        self, x_TI: Tensor, forward_pass: ForwardPass, plus_TO: Tensor | None
    ) -> tuple[Tensor, Sequence[Tensor]]:
        assert self.base.packed
        routes, layout = forward_pass.routes, forward_pass.packed_routes(x_TI.dtype)
        adapter_x_TI = x_TI
        if any(route.dropout for route in routes):
            adapter_x_TI = x_TI.clone()
            for route in routes:
                route.of(adapter_x_TI).copy_(route.dropped(route.of(x_TI), self.group))
        y_TO, h_TS = self.base.packed.adapted(x_TI, adapter_x_TI, plus_TO, layout.table(self.group))
        return y_TO, [route.of(h_TS)[:, : len(self.operand(route, x_TI.dtype).a_SI)] for route in routes]


class _AdaptedProduct(torch.autograd.Function):
    """Keeps x and the few numbers halfway; masks are drawn again."""

    @staticmethod
    def forward(
        ctx: Any, x_TI: Tensor, plus_TO: Tensor | None, layer: AdaptedLinear, forward_pass: ForwardPass, *leaves: Tensor
    ) -> Tensor:
        y_TO, hs = layer.product(x_TI, forward_pass, plus_TO)
        # The leaves too, so that autograd sees a weight that was changed in between.
        ctx.save_for_backward(x_TI, *hs, *leaves)
        ctx.layer, ctx.routes = layer, forward_pass.routes
        return y_TO

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        layer: AdaptedLinear = ctx.layer
        routes: Sequence[Route] = ctx.routes
        x_TI, *hs = ctx.saved_tensors[: 1 + len(routes)]
        grad_TO = grads[0]
        leaf_grads: list[Tensor] = []
        parts = []
        for route, h_NS in zip(routes, hs, strict=True):
            operand, grad_NO = layer.operand(route, x_TI.dtype), route.of(grad_TO)
            grad_NS = product(grad_NO, operand.b_OS.T)
            grad_SI = product(grad_NS.T, route.dropped(route.of(x_TI), layer.group).T).float() * route.adapter.scale
            leaf_grads += [grad_SI, *_blocks(product(h_NS.T, grad_NO.T), route.adapter.matrices[layer.group])]
            if ctx.needs_input_grad[0]:
                parts.append(route.dropped(product(grad_NS, operand.a_SI.T), layer.group))
        grad_TI = None
        if ctx.needs_input_grad[0]:
            grad_TI = layer.base.backward_product(grad_TO, _laid_out(parts, routes, x_TI))
        return grad_TI, grad_TO if ctx.needs_input_grad[1] else None, None, None, *leaf_grads


def _laid_out(parts: Sequence[Tensor], routes: Sequence[Route], like_T: Tensor) -> Tensor | None:
    """Each route's part on its rows, 0 elsewhere; None when there is none."""
    if len(parts) == 1 and len(parts[0]) == len(like_T):
        return parts[0]
    if not parts:
        return None
    whole = like_T.new_zeros(len(like_T), parts[0].shape[1])
    for part, route in zip(parts, routes, strict=True):
        route.of(whole).copy_(part)
    return whole


def _blocks(grad_SO: Tensor, matrices: Matrices) -> list[Tensor]:
    """The gradients of the Bs, out of that of the matrix which has them on its diagonal."""
    rank = grad_SO.shape[0] // len(matrices.Bs)
    columns = grad_SO.float().split([len(b) for b in matrices.Bs], 1)
    return [part[index * rank : (index + 1) * rank].T for index, part in enumerate(columns)]


def _sum(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    return b if a is None else a if b is None else a + b
