"""A session's LoRA weights, gradients and optimizer state."""

from dataclasses import dataclass

import torch
from torch import Tensor

from contract.session import LoraConfig
from workers.engine.random_keys import random_key


@dataclass(frozen=True)
class Shape:
    """Of one adapted linear layer, and the layer's name in the model ("model.layers.0.self_attn.q_proj")."""

    name: str
    inputs: int
    outputs: int


@dataclass(frozen=True)
class Pair:
    """A [rank, inputs] and B [outputs, rank] of one layer: views of the adapter's flat weights."""

    A: Tensor
    B: Tensor


class Adapter:
    """All of it fp32 and flat, one vector each, so that the optimizer, norms and copies see whole vectors.

    A is Kaiming-uniform (a = sqrt 5, that is U(-1/sqrt(inputs), 1/sqrt(inputs))) and drawn on the
    CPU, so that a seed means the same weights on every device; B is zero.
    """

    def __init__(self, shapes: list[Shape], lora: LoraConfig, seed: int, device: torch.device) -> None:
        self.shapes = shapes
        self.rank = lora.rank
        self.scale = lora.alpha / lora.rank
        self.dropout = lora.dropout
        self.step = 0
        self.accumulated_calls = 0
        self.weights = self._initial_weights(seed).to(device)
        self.gradients = torch.zeros_like(self.weights)
        self.exp_avg = torch.zeros_like(self.weights)
        self.exp_avg_sq = torch.zeros_like(self.weights)
        self.pairs = [Pair(pair.A.requires_grad_(), pair.B.requires_grad_()) for pair in self.views(self.weights)]

    @property
    def leaves(self) -> list[Tensor]:
        """The tensors to differentiate by, in the order of `views`."""
        return [tensor for pair in self.pairs for tensor in (pair.A, pair.B)]

    def views(self, flat: Tensor) -> list[Pair]:
        """`flat`, a vector of the weights' size, seen as one pair per layer."""
        pairs, at, rank = [], 0, self.rank
        for shape in self.shapes:
            middle, end = at + rank * shape.inputs, at + rank * (shape.inputs + shape.outputs)
            a, b = flat.detach()[at:middle], flat.detach()[middle:end]
            pairs.append(Pair(a.view(rank, shape.inputs), b.view(shape.outputs, rank)))
            at = end
        return pairs

    def accumulate(self, gradients: Tensor) -> None:
        """Adds one call's gradients, a vector of the weights' size."""
        self.gradients += gradients
        self.accumulated_calls += 1

    def clear_gradients(self) -> None:
        self.gradients.zero_()
        self.accumulated_calls = 0

    def _initial_weights(self, seed: int) -> Tensor:
        size = sum(self.rank * (shape.inputs + shape.outputs) for shape in self.shapes)
        weights = torch.zeros(size)
        generator = torch.Generator().manual_seed(random_key(seed, bits=63))
        for pair, shape in zip(self.views(weights), self.shapes, strict=True):
            bound = shape.inputs**-0.5
            pair.A.uniform_(-bound, bound, generator=generator)
        return weights
