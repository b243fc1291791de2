"""Dropout whose masks depend on the call, the sample and the layer, and on nothing else."""

from collections.abc import Sequence

import torch

from workers.engine.random_keys import random_key


class Dropout:
    """Inverted dropout on what LoRA layers read; layers that read the same input share a mask.

    The rows are those of samples `samples` of the call one after the other, of lengths `lengths`. With `key`, the
    numbers that Philox4x32-10 has at (column, position in the sample, sample, group of layers) decide: an element whose
    number is at least `least` is kept and multiplied by `factor`. So neither the device nor the way in which a call is
    cut into passes changes a mask.
    """

    def __init__(
        self,
        probability: float,
        seed: int,
        samples: Sequence[int],
        lengths: Sequence[int],
        device: torch.device | None = None,
    ) -> None:
        self.key = random_key(seed, bits=64)
        self.least, self.factor = min(round(probability * 2**32), 2**32 - 1), 1.0 / (1.0 - probability)
        self.samples_N = torch.tensor(samples).repeat_interleave(torch.tensor(lengths)).to(device)
        self.positions_N = torch.cat([torch.arange(length) for length in lengths]).to(device)
