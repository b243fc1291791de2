"""Dropout masks by torch's operations, from numbers that are named by integers: Philox4x32-10 (Salmon et al. 2011,
doi:10.1145/2063384.2063405)."""

from collections.abc import Sequence

import torch
from torch import Tensor

from workers.engine.adapters.dropout import Dropout

ROUNDS = 10
FACTORS, KEY_STEPS = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)
BITS = 0xFFFFFFFF
# Columns that have a counter each, for four numbers.
COUNTER_COLUMNS = 16
# Rows whose masks are made at once on a CPU: what its caches hold of them.
MOST_ROWS = 64


def dropped_out(x_NI: Tensor, dropout: Dropout, group: int) -> Tensor:
    rows = MOST_ROWS if x_NI.device.type == "cpu" else max(1, len(x_NI))
    parts = zip(*(part.split(rows) for part in (x_NI, dropout.samples_N, dropout.positions_N)), strict=True)
    return torch.cat([_masked(x, samples, positions, dropout, group) for x, samples, positions in parts])


def _masked(x_NI: Tensor, samples_N: Tensor, positions_N: Tensor, dropout: Dropout, group: int) -> Tensor:
    samples_N1, positions_N1 = samples_N[:, None], positions_N[:, None]
    columns_C = torch.arange(-(-x_NI.shape[1] // (4 * COUNTER_COLUMNS)) * COUNTER_COLUMNS, device=x_NI.device)
    numbers = torch.stack(
        philox((columns_C, positions_N1, samples_N1, torch.full_like(samples_N1, group)), dropout.key)
    )
    numbers_NI = numbers.unflatten(2, (-1, COUNTER_COLUMNS)).permute(1, 2, 0, 3).flatten(1)[:, : x_NI.shape[1]]
    return (x_NI.float() * ((numbers_NI >= dropout.least) * dropout.factor)).to(x_NI.dtype)


def philox(counter: Sequence[Tensor], key: int) -> list[Tensor]:
    """Four numbers of 32 random bits for the four numbers of a counter, in int64 tensors that broadcast.

    `key` has 64 bits, the lower 32 first.
    """
    x0, x1, x2, x3 = counter
    keys = [key & BITS, key >> 32]
    for _ in range(ROUNDS):
        first, second = x0 * FACTORS[0], x2 * FACTORS[1]
        x0, x1 = _upper(second) ^ x1 ^ keys[0], second & BITS
        x2, x3 = _upper(first) ^ x3 ^ keys[1], first & BITS
        keys = [(part + step) & BITS for part, step in zip(keys, KEY_STEPS, strict=True)]
    return [x0, x1, x2, x3]


def _upper(product: Tensor) -> Tensor:
    # A product of 64 bits may look negative.
    return (product >> 32) & BITS
