"""Dropout masks that depend on the call, the sample and the layer, and on nothing else."""

from dataclasses import dataclass

import torch
from torch import Tensor

from workers.engine.random_keys import random_key


@dataclass(frozen=True)
class Dropout:
    """Inverted dropout on the input of LoRA layers.

    Row b of a batch holds sample `samples[b]` of the call in its first `lengths[b]` positions. Each
    (seed, sample, layer) has a stream of its own, so the way a call is cut and padded changes no mask.
    """

    probability: float
    seed: int
    samples: list[int]
    lengths: list[int]

    def mask(self, layer: int, like_BTI: Tensor) -> Tensor:
        """fp32 [B, T, inputs]: 0 where dropped and in the padding, else 1 / (1 - probability)."""
        keep = 1.0 - self.probability
        mask_BTI = torch.zeros_like(like_BTI, dtype=torch.float32)
        generator = torch.Generator(like_BTI.device)
        for row, (sample, length) in enumerate(zip(self.samples, self.lengths, strict=True)):
            generator.manual_seed(random_key(self.seed, sample, layer, bits=63))
            mask_BTI[row, :length].bernoulli_(keep, generator=generator)
        return mask_BTI.div_(keep)
