"""LoRA on frozen products, several adapters in one pass (Hu et al. 2021, arXiv:2106.09685)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Protocol

import torch
from torch import Tensor

from workers.engine.adapter import Adapter
from workers.engine.adapter_layout import Matrices
from workers.engine.dropout import Dropout
from workers.engine.frozen_linear import FrozenLinear, product
from workers.engine.lora_operands import Operand
from workers.engine.published import Published

TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


@dataclass(frozen=True)
class Route:
    """Which rows of a packed pass an adapter acts on; None is all of them."""

    adapter: Adapter | Published
    rows: slice | None
    dropout: Dropout | None = None

    def of(self, x_TI: Tensor) -> Tensor:
        """Its rows of x."""
        return x_TI if self.rows is None else x_TI[self.rows]

    def dropped(self, x_NI: Tensor, group: int) -> Tensor:
        """What a group of layers reads of its rows, or a gradient of that, dropped out where asked."""
        return x_NI if self.dropout is None else x_NI * self.dropout.mask(group, x_NI)


class Stacked(Protocol):
    """Many adapters at once, for rows that nothing is differentiated by (see crowd.py)."""

    def low_rank(self, x_TI: Tensor, group: int) -> Tensor:
        """scale * B A x of each row's own A and B, [T, outputs]."""


Lora = Sequence[Route] | Stacked


def grouped(adapters: Sequence[Adapter | Published]) -> list[int]:
    """The order of indices in which equal adapters stand together."""
    places: dict[Adapter | Published, int] = {}
    for adapter in adapters:
        places.setdefault(adapter, len(places))
    return sorted(range(len(adapters)), key=lambda index: places[adapters[index]])


def routes_of(adapters: Sequence[Adapter | Published], lengths: Sequence[int]) -> list[Route]:
    """Of segments one after the other, equal adapters together."""
    routes: list[Route] = []
    start = 0
    for adapter, group in groupby(zip(adapters, lengths, strict=True), key=lambda pair: pair[0]):
        stop = start + sum(length for _, length in group)
        routes.append(Route(adapter, slice(start, stop)))
        start = stop
    return routes if len(routes) > 1 else [Route(adapters[0], None)]


class AdaptedLinear:
    """y = W x + scale * B A dropout(x) for each row's own A and B, and one W for all.

    W may be those of several layers below each other: a group, as which the adapters know it. The sum is rounded once
    to the base model's dtype.
    """

    def __init__(self, base: FrozenLinear, group: int) -> None:
        self.base = base
        self.group = group

    def __call__(self, x_TI: Tensor, routes: Lora) -> Tensor:
        """[T, inputs] -> [T, outputs]"""
        if not isinstance(routes, Sequence):
            return self.base.product(x_TI, routes.low_rank(x_TI, self.group))
        if not torch.is_grad_enabled():
            return self.product(x_TI, routes)[0]
        leaves = [leaf for route in routes for leaf in route.adapter.matrices[self.group].leaves]
        y_TO: Tensor = _AdaptedProduct.apply(x_TI, self, routes, *leaves)
        return y_TO

    def operand(self, route: Route, dtype: torch.dtype) -> Operand:
        return route.adapter.operands.of(dtype)[self.group]

    def product(self, x_TI: Tensor, routes: Sequence[Route]) -> tuple[Tensor, list[Tensor]]:
        """As `__call__`, outside of autograd; and scale * A x of each route's rows."""
        operands = [self.operand(route, x_TI.dtype) for route in routes]
        inputs = [route.dropped(route.of(x_TI), self.group) for route in routes]
        hs = [product(x_NI, operand.a_SI) for x_NI, operand in zip(inputs, operands, strict=True)]
        parts = [product(h_NS, operand.b_OS) for h_NS, operand in zip(hs, operands, strict=True)]
        return self.base.product(x_TI, _laid_out(parts, routes, x_TI)), hs


class _AdaptedProduct(torch.autograd.Function):
    """Keeps x and the few numbers halfway; masks are drawn again."""

    @staticmethod
    def forward(ctx: Any, x_TI: Tensor, layer: AdaptedLinear, routes: Sequence[Route], *leaves: Tensor) -> Tensor:
        y_TO, hs = layer.product(x_TI, routes)
        # The leaves too, so that autograd sees a weight that was changed in between.
        ctx.save_for_backward(x_TI, *hs, *leaves)
        ctx.layer, ctx.routes = layer, routes
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
        return grad_TI, None, None, *leaf_grads


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
