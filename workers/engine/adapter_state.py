"""All that an adapter is, as a copy that nothing changes any more, and as bytes."""

from dataclasses import dataclass, fields, replace

import torch
from safetensors.torch import load, save
from torch import Tensor

from workers.engine.adapter import Adapter

VECTORS = ("weights", "exp_avg", "exp_avg_sq", "gradients")


@dataclass(frozen=True)
class AdapterState:
    """fp32 vectors on the CPU, each of the adapter's size, and the counts that go with them.

    Gradients that no optim-step has used yet are part of it, so that it may be taken between any two operations.
    """

    weights: Tensor
    exp_avg: Tensor
    exp_avg_sq: Tensor
    gradients: Tensor
    counts: Tensor

    @classmethod
    def of(cls, adapter: Adapter) -> "AdapterState":
        copies = {name: getattr(adapter, name).detach().to("cpu", copy=True) for name in VECTORS}
        return cls(**copies, counts=torch.tensor([adapter.step, adapter.accumulated_calls]))

    @property
    def step(self) -> int:
        return int(self.counts[0])

    def without_gradients(self) -> "AdapterState":
        """As after an optim-step: what no step has used yet is left out."""
        counts = torch.tensor([self.step, 0])
        return replace(self, gradients=torch.zeros_like(self.gradients), counts=counts)

    @torch.no_grad()
    def restore(self, adapter: Adapter) -> None:
        """Makes `adapter`, of the same model and rank, what it was when the copy was taken, bit for bit.

        Raises:
            ValueError: the adapter is of another size.
        """
        if self.weights.shape != adapter.weights.shape:
            raise ValueError("the saved adapter does not fit: another base model or rank")
        for name in VECTORS:
            getattr(adapter, name).copy_(getattr(self, name))
        adapter.step, adapter.accumulated_calls = self.counts.tolist()

    def to_bytes(self) -> bytes:
        """safetensors; the gradients only when there are any."""
        tensors = {field.name: getattr(self, field.name) for field in fields(self)}
        if not self.counts[1]:
            del tensors["gradients"]
        return save(tensors)

    @classmethod
    def from_bytes(cls, data: bytes) -> "AdapterState":
        """What `to_bytes` wrote."""
        tensors = load(data)
        return cls(**{"gradients": torch.zeros_like(tensors["weights"]), **tensors})
