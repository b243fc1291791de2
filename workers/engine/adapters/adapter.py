"""A session's LoRA weights, gradients and optimizer state."""

import torch
from torch import Tensor

from domain.session import LoraConfig
from workers.engine.adapters.layout import AdapterLayout, Group
from workers.engine.adapters.low_rank import LowRankWeights
from workers.engine.random_keys import random_key


class Adapter:
    """Each is one flat fp32 vector, which the optimizer, norms and copies read as a whole.

    A is Kaiming-uniform (a = sqrt 5, that is U(-1/sqrt(inputs), 1/sqrt(inputs))) and drawn on the
    CPU, so that a seed means the same weights on every device; B is zero.
    """

    def __init__(self, groups: tuple[Group, ...], lora: LoraConfig, seed: int, device: torch.device) -> None:
        self.layout = AdapterLayout(groups, lora.rank)
        self.rank = lora.rank
        self.scale = lora.alpha / lora.rank
        self.dropout = lora.dropout
        self.step = 0
        self.accumulated_calls = 0
        self.weights = self._initial_weights(seed).to(device)
        self.gradients = torch.zeros_like(self.weights)
        self.exp_avg = torch.zeros_like(self.weights)
        self.exp_avg_sq = torch.zeros_like(self.weights)
        self.matrices = self.layout.matrices(self.weights)
        self.low_rank = LowRankWeights(self.weights, self.matrices, self.scale)
        for leaf in self.leaves:
            leaf.requires_grad_()

    @property
    def leaves(self) -> list[Tensor]:
        """The tensors to differentiate by."""
        return [leaf for matrices in self.matrices for leaf in matrices.leaves]

    def accumulate(self, gradients: Tensor) -> None:
        """Adds one call's gradients, a vector of the weights' size."""
        self.gradients += gradients
        self.accumulated_calls += 1

    def clear_gradients(self) -> None:
        self.gradients.zero_()
        self.accumulated_calls = 0

    def _initial_weights(self, seed: int) -> Tensor:
        weights = torch.zeros(self.layout.size)
        generator = torch.Generator().manual_seed(random_key(seed, bits=63))
        for pair, shape in zip(self.layout.pairs(weights), self.layout.shapes, strict=True):
            bound = shape.inputs**-0.5
            pair.A.uniform_(-bound, bound, generator=generator)
        return weights


class Published:
    """A copy of an adapter's weights that never changes: what samples of a publishing session use.

    It has the attributes of an Adapter that a forward pass reads. A sample in flight keeps the copy it began with."""

    def __init__(self, adapter: Adapter, weights: Tensor, step: int) -> None:
        self.weights = weights
        self.matrices = adapter.layout.matrices(weights)
        self.low_rank = LowRankWeights(weights, self.matrices, adapter.scale)
        self.scale = adapter.scale
        self.step = step

    @classmethod
    @torch.no_grad()
    def of(cls, adapter: Adapter) -> "Published":
        return cls(adapter, adapter.weights.detach().clone(), adapter.step)
