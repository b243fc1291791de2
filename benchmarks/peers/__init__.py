"""The engines that are measured, ours among them: one module each, whose `load(model, dtype, device, threads)` gives a
Sampler, a Trainer or both, as benchmarks/engines.py says.

A module here imports, besides its own engine, only what runs on a bare Python: it lives in its engine's environment.
"""

from typing import Protocol

from benchmarks.workloads import Sampling, Training


class Sampler(Protocol):
    """An engine with its model loaded; each call is one measured piece of work, from the request to its result."""

    def sample(self, workload: Sampling) -> int:
        """The number of tokens that were sampled and useful."""


class Trainer(Protocol):
    """The same, for training."""

    def train(self, workload: Training) -> float:
        """The loss."""
