"""Dropout whose masks depend on the call, the sample and the layer, and on nothing else."""

from collections.abc import Sequence

import torch
from torch import Tensor

from workers.engine.adapters.philox import philox
from workers.engine.kernels import functional
from workers.engine.kernels.kernel import have_kernels
from workers.engine.random_keys import random_key

# Columns that have a counter each, for four numbers.
SIMD_WIDTH = 16
# Rows whose masks are made at once on a CPU without kernels: what its caches hold of them.
MOST_ROWS = 64


class Dropout:
    """Inverted dropout on what LoRA layers read; layers that read the same share a mask.

    The rows are those of samples `samples` of the call one after the other, of lengths `lengths`. A number is kept or
    not by (seed, sample, position in it, group of layers, column), so the way a call is cut changes no mask, nor does
    the device.
    """

    def __init__(
        self,
        probability: float,
        seed: int,
        samples: Sequence[int],
        lengths: Sequence[int],
        device: torch.device | None = None,
    ) -> None:
        self._key = random_key(seed, bits=64)
        self._least, self._factor = min(round(probability * 2**32), 2**32 - 1), 1.0 / (1.0 - probability)
        self._samples_N = torch.tensor(samples).repeat_interleave(torch.tensor(lengths)).to(device)
        self._positions_N = torch.cat([torch.arange(length) for length in lengths]).to(device)

    def of(self, x_NI: Tensor, group: int) -> Tensor:
        """x times the group's mask, rounded once."""
        if not have_kernels(x_NI.device, x_NI.dtype):
            rows = MOST_ROWS if x_NI.device.type == "cpu" else max(1, len(x_NI))
            parts = zip(*(part.split(rows) for part in (x_NI, self._samples_N, self._positions_N)), strict=True)
            return torch.cat([self._plain(x, samples, positions, group) for x, samples, positions in parts])
        return functional.dropout(
            x_NI, self._samples_N, self._positions_N,
            key=self._key, group=group, least=self._least, factor=self._factor,
        )  # fmt: skip

    def _plain(self, x_NI: Tensor, samples_N: Tensor, positions_N: Tensor, group: int) -> Tensor:
        samples_N1, positions_N1 = samples_N[:, None], positions_N[:, None]
        columns_C = torch.arange(-(-x_NI.shape[1] // (4 * SIMD_WIDTH)) * SIMD_WIDTH, device=x_NI.device)
        numbers = torch.stack(
            philox((columns_C, positions_N1, samples_N1, torch.full_like(samples_N1, group)), self._key)
        )
        numbers_NI = numbers.unflatten(2, (-1, SIMD_WIDTH)).permute(1, 2, 0, 3).flatten(1)[:, : x_NI.shape[1]]
        return (x_NI.float() * ((numbers_NI >= self._least) * self._factor)).to(x_NI.dtype)
