"""LoRA on frozen linear layers, several adapters in one batch (Hu et al. 2021, arXiv:2106.09685)."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from workers.engine.adapter import Adapter, Shape
from workers.engine.dropout import Dropout
from workers.engine.frozen_linear import FrozenLinear
from workers.engine.published import Published

TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


@dataclass(frozen=True)
class Route:
    """Which rows of the batch an adapter acts on; `rows` None is all of them."""

    adapter: Adapter | Published
    rows: Tensor | None = None
    dropout: Dropout | None = None


def routes_of(adapters: list[Adapter | Published], device: torch.device) -> list[Route]:
    """The routes of a batch whose row b belongs to `adapters[b]`."""
    distinct = list(dict.fromkeys(adapters))
    if len(distinct) == 1:
        return [Route(distinct[0])]
    rows = {adapter: [row for row, other in enumerate(adapters) if other is adapter] for adapter in distinct}
    return [Route(adapter, torch.tensor(rows[adapter], device=device)) for adapter in distinct]


class Routing:
    """The routes of the forward pass that is running; its layers look here."""

    def __init__(self) -> None:
        self.routes: list[Route] = []

    @contextmanager
    def use(self, routes: list[Route]) -> Iterator[None]:
        self.routes = routes
        try:
            yield
        finally:
            self.routes = []


class LoraLinear(nn.Module):
    """y = W x + scale * B A x. The sum is taken in fp32 and rounded once to the base model's dtype."""

    def __init__(self, base: FrozenLinear, layer: int, routing: Routing) -> None:
        super().__init__()
        self.base = base
        self.layer = layer
        self.routing = routing

    def forward(self, x_BTI: Tensor) -> Tensor:
        if x_BTI.ndim != 3:
            raise ValueError("the model feeds an adapted layer without a batch dimension, so rows cannot be told apart")
        y_BTO: Tensor = self.base(x_BTI)
        for route in self.routing.routes:
            if route.rows is None:
                return self._adapted(y_BTO, x_BTI, route)
            y_BTO[route.rows] = self._adapted(y_BTO[route.rows], x_BTI[route.rows], route)
        return y_BTO

    def _adapted(self, y_BTO: Tensor, x_BTI: Tensor, route: Route) -> Tensor:
        pair = route.adapter.pairs[self.layer]
        adapted: Tensor = AddLora.apply(y_BTO, x_BTI, pair.A, pair.B, route.adapter.scale, route.dropout, self.layer)
        return adapted


class AddLora(torch.autograd.Function):
    """y + scale * dropout(x) A^T B^T, in fp32 whatever the dtype of y [B, T, outputs] and x [B, T, inputs].

    Keeps x as it came and computes its fp32 copy, the mask and A x again in backward: what autograd
    would keep by itself is several times the size of the base model's own activations. Conversions
    are explicit, because torch's arithmetic between bf16 and fp32 is many times slower on CPUs.
    """

    @staticmethod
    def forward(
        ctx: Any, y: Tensor, x: Tensor, A: Tensor, B: Tensor, scale: float, dropout: Dropout | None, layer: int
    ) -> Tensor:
        ctx.save_for_backward(x, A, B)
        ctx.scale, ctx.dropout, ctx.layer = scale, dropout, layer
        h_NR = linear(_dropped(x, dropout, layer)[0], A).flatten(0, 1) * scale
        return torch.addmm(y.float().flatten(0, 1), h_NR, B.T).view_as(y).to(y.dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, A, B = ctx.saved_tensors
        dropped, mask = _dropped(x, ctx.dropout, ctx.layer)
        x_NI, grad_NO = dropped.flatten(0, 1), grads[0].float().flatten(0, 1)
        grad_NR = (grad_NO @ B) * ctx.scale
        grad_A = grad_NR.T @ x_NI
        grad_B = grad_NO.T @ (linear(x_NI, A) * ctx.scale)
        if not ctx.needs_input_grad[1]:
            return grads[0], None, grad_A, grad_B, None, None, None
        grad_x = (grad_NR @ A).view_as(x)
        return grads[0], (grad_x if mask is None else grad_x * mask).to(x.dtype), grad_A, grad_B, None, None, None


def _dropped(x: Tensor, dropout: Dropout | None, layer: int) -> tuple[Tensor, Tensor | None]:
    if dropout is None:
        return x.float(), None
    mask = dropout.mask(layer, x)
    return x.float() * mask, mask


def attach(model: nn.Module, routing: Routing) -> list[Shape]:
    """Puts a LoraLinear around every target layer; their shapes, in the model's own order.

    Raises:
        ValueError: the model has none of the targets.
    """
    found = [
        (path, parent, name, child)
        for path, parent in model.named_modules()
        for name, child in parent.named_children()
        if name in TARGETS and isinstance(child, nn.Linear)
    ]
    if not found:
        raise ValueError(f"the model has no linear layer named {', '.join(TARGETS)}; adapters need one")
    for layer, (_, parent, name, child) in enumerate(found):
        setattr(parent, name, LoraLinear(FrozenLinear(child.weight, child.bias), layer, routing))
    return [Shape(f"{path}.{name}", child.in_features, child.out_features) for path, _, name, child in found]
