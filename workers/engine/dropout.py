"""Dropout masks that depend on the call, the sample and the layer, and on nothing else."""

from dataclasses import dataclass

import torch
from torch import Tensor

from workers.engine.random_keys import random_key


@dataclass(frozen=True)
class Dropout:
    """Inverted dropout on what LoRA layers read; layers that read the same share a mask.

    The rows are those of samples `samples` of the call one after the other, of lengths `lengths`. Each (seed, sample,
    group of layers) has a stream of its own, so the way a call is cut changes no mask.
    """

    probability: float
    seed: int
    samples: list[int]
    lengths: list[int]

    def mask(self, group: int, like_NI: Tensor) -> Tensor:
        """[N, inputs]: 0 where dropped, else 1 / (1 - probability)."""
        keep = 1.0 - self.probability
        mask_NI = torch.empty_like(like_NI)
        generator = torch.Generator(like_NI.device)
        for sample, part_LI in zip(self.samples, mask_NI.split(self.lengths), strict=True):
            generator.manual_seed(random_key(self.seed, sample, group, bits=63))
            part_LI.bernoulli_(keep, generator=generator)
        return mask_NI.div_(keep)
