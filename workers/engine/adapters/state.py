"""The complete state of an adapter, as an immutable copy and as bytes."""

from dataclasses import dataclass, fields, replace

import torch
from safetensors.torch import load, save
from torch import Tensor

from workers.engine.adapters.adapter import Adapter, Published

VECTORS = ("weights", "exp_avg", "exp_avg_sq", "gradients")


@dataclass(frozen=True)
class AdapterState:
    """fp32 vectors on the CPU, each of the adapter's size, and the counts (steps, accumulated calls).

    Gradients that no optim-step has used yet are part of it, so that it may be taken between any two operations.
    """

    weights: Tensor
    exp_avg: Tensor
    exp_avg_sq: Tensor
    gradients: Tensor
    counts: Tensor
    published: Tensor | None = None
    published_step: Tensor | None = None

    @classmethod
    def of(cls, adapter: Adapter, published: Published | None = None) -> "AdapterState":
        """`published` are the weights that samples use, where they are not the adapter's own."""
        copies = {name: getattr(adapter, name).detach().to("cpu", copy=True) for name in VECTORS}
        state = cls(**copies, counts=torch.tensor([adapter.step, adapter.accumulated_calls]))
        if published is None:
            return state
        return replace(state, published=published.weights.cpu(), published_step=torch.tensor([published.step]))

    @property
    def step(self) -> int:
        return int(self.counts[0])

    def without_gradients(self) -> "AdapterState":
        """Without unused gradients and published weights, as right after an optim-step and a weights-sync."""
        counts, zeros = torch.tensor([self.step, 0]), torch.zeros_like(self.gradients)
        return replace(self, gradients=zeros, counts=counts, published=None, published_step=None)

    def weights_only(self) -> "AdapterState":
        """The weights with the optimizer state of an adapter before its first optim-step."""
        zeros = torch.zeros_like(self.weights)
        return replace(self, exp_avg=zeros, exp_avg_sq=zeros, gradients=zeros, counts=torch.tensor([0, 0]))

    @torch.no_grad()
    def restore(self, adapter: Adapter) -> None:
        """Sets `adapter`, of the same model and rank, to this state, bit for bit.

        Raises:
            ValueError: the adapter is of another size.
        """
        if self.weights.shape != adapter.weights.shape:
            raise ValueError("the saved adapter does not fit: another base model or rank")
        for name in VECTORS:
            getattr(adapter, name).copy_(getattr(self, name))
        adapter.step, adapter.accumulated_calls = self.counts.tolist()

    def published_for(self, adapter: Adapter) -> Published:
        """The weights that samples use, for an adapter that was restored from this state."""
        if self.published is None or self.published_step is None:
            return Published.of(adapter)
        return Published(adapter, self.published.to(adapter.weights.device, copy=True), int(self.published_step[0]))

    def to_bytes(self) -> bytes:
        """In the safetensors format; gradients only where there are any."""
        tensors = {field.name: value for field in fields(self) if (value := getattr(self, field.name)) is not None}
        if not self.counts[1]:
            del tensors["gradients"]
        return save(tensors)

    @classmethod
    def from_bytes(cls, data: bytes) -> "AdapterState":
        """From the bytes of `to_bytes`."""
        tensors = load(data)
        return cls(**{"gradients": torch.zeros_like(tensors["weights"]), **tensors})
