"""A version of an adapter's weights that nothing changes any more: what samples of a publishing session use."""

import torch
from torch import Tensor

from workers.engine.adapter import Adapter
from workers.engine.lora_operands import LoraOperands


class Published:
    """Reads like the adapter that it was taken from, as it was then. A sample in flight keeps the one it began with."""

    def __init__(self, adapter: Adapter, weights: Tensor, step: int) -> None:
        self.weights = weights
        self.matrices = adapter.layout.matrices(weights)
        self.operands = LoraOperands(weights, self.matrices, adapter.scale)
        self.scale = adapter.scale
        self.step = step

    @classmethod
    @torch.no_grad()
    def of(cls, adapter: Adapter) -> "Published":
        return cls(adapter, adapter.weights.detach().clone(), adapter.step)
