"""LoRA on frozen products, several adapters in one pass (Hu et al. 2021, arXiv:2106.09685)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

from workers.engine.adapter import Adapter
from workers.engine.adapter_layout import Matrices
from workers.engine.dropout import Dropout
from workers.engine.frozen_linear import FrozenLinear
from workers.engine.published import Published

TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


@dataclass(frozen=True)
class Route:
    """Which rows of a packed pass an adapter acts on."""

    adapter: Adapter | Published
    rows: slice
    dropout: Dropout | None = None


def grouped(adapters: Sequence[Adapter | Published]) -> list[int]:
    """The order of indices in which equal adapters stand together."""
    places: dict[Adapter | Published, int] = {}
    for adapter in adapters:
        places.setdefault(adapter, len(places))
    return sorted(range(len(adapters)), key=lambda index: places[adapters[index]])


def routes_of(adapters: Sequence[Adapter | Published], lengths: Sequence[int]) -> list[Route]:
    """Of segments one after the other, equal adapters together."""
    routes, start = [], 0
    for adapter, group in groupby(zip(adapters, lengths, strict=True), key=lambda pair: pair[0]):
        stop = start + sum(length for _, length in group)
        routes.append(Route(adapter, slice(start, stop)))
        start = stop
    return routes


class AdaptedLinear:
    """y = W x + scale * B A dropout(x) for each row's own A and B, and one W for all.

    W may be those of several layers below each other: a group, as which the adapters know it. The sum is taken in
    fp32 and rounded once to the base model's dtype.
    """

    def __init__(self, base: FrozenLinear, group: int) -> None:
        self.base = base
        self.group = group

    def __call__(self, x_TI: Tensor, routes: Sequence[Route]) -> Tensor:
        """[T, inputs] -> [T, outputs]"""
        if not torch.is_grad_enabled():
            return self.product(x_TI, routes)
        leaves = [leaf for route in routes for leaf in self.matrices(route).leaves]
        y_TO: Tensor = _AdaptedProduct.apply(x_TI, self, routes, *leaves)
        return y_TO

    def matrices(self, route: Route) -> Matrices:
        return route.adapter.matrices[self.group]

    def input(self, x_TI: Tensor, route: Route) -> Tensor:
        """What the route's A is multiplied with, fp32: its rows of x, dropped out where asked."""
        x_NI = x_TI[route.rows].float()
        return x_NI if route.dropout is None else x_NI * route.dropout.mask(self.group, x_NI)

    def product(self, x_TI: Tensor, routes: Sequence[Route]) -> Tensor:
        """As `__call__`, outside of autograd."""
        base_TO = self.base.product(x_TI)
        if not routes:
            return base_TO
        y_TO = base_TO.float()
        for route in routes:
            matrices = self.matrices(route)
            hs = _halfway(self.input(x_TI, route), route, matrices)
            for y_NO, h_NR, b in zip(_parts(y_TO[route.rows], matrices), hs, matrices.Bs, strict=True):
                y_NO.addmm_(h_NR, b.T)
        return y_TO.to(base_TO.dtype)


class _AdaptedProduct(torch.autograd.Function):
    """Keeps x as it came, and computes its fp32 copy, its mask and A x again: what autograd would keep by itself is
    several times the size of the base model's own activations. Conversions are explicit, because torch's arithmetic
    between bf16 and fp32 is many times slower on CPUs."""

    @staticmethod
    def forward(ctx: Any, x_TI: Tensor, layer: AdaptedLinear, routes: Sequence[Route], *leaves: Tensor) -> Tensor:
        # Saved, so that autograd sees a weight that was changed in between.
        ctx.save_for_backward(x_TI, *leaves)
        ctx.layer, ctx.routes = layer, routes
        return layer.product(x_TI, routes)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        layer: AdaptedLinear = ctx.layer
        x_TI, grad_TO = ctx.saved_tensors[0], grads[0]
        needs_x = ctx.needs_input_grad[0]
        grad_x_TI = layer.base.backward_product(grad_TO).float() if needs_x else None
        leaf_grads: list[Tensor] = []
        wide_TO = grad_TO.float()
        for route in ctx.routes:
            matrices = layer.matrices(route)
            x_NI = layer.input(x_TI, route)
            grads_NO = _parts(wide_TO[route.rows], matrices)
            grad_NS = torch.cat([part @ b for part, b in zip(grads_NO, matrices.Bs, strict=True)], 1)
            grad_NS *= route.adapter.scale
            hs = _halfway(x_NI, route, matrices)
            leaf_grads += [grad_NS.T @ x_NI, *((h.T @ part).T for h, part in zip(hs, grads_NO, strict=True))]
            if grad_x_TI is not None:
                _add_input_gradient(grad_x_TI[route.rows], grad_NS @ matrices.A, route, layer.group)
        return None if grad_x_TI is None else grad_x_TI.to(x_TI.dtype), None, None, *leaf_grads


def _halfway(x_NI: Tensor, route: Route, matrices: Matrices) -> Sequence[Tensor]:
    """scale * A x of each layer of the group, [N, rank] each."""
    h_NS = linear(x_NI, matrices.A).mul_(route.adapter.scale)
    return h_NS.chunk(len(matrices.Bs), 1)


def _parts(y_NO: Tensor, matrices: Matrices) -> Sequence[Tensor]:
    return y_NO.split([len(b) for b in matrices.Bs], 1)


def _add_input_gradient(grad_x_NI: Tensor, by_adapter_NI: Tensor, route: Route, group: int) -> None:
    if route.dropout is not None:
        by_adapter_NI *= route.dropout.mask(group, by_adapter_NI)
    grad_x_NI += by_adapter_NI
