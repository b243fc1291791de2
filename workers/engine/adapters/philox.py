"""Numbers that are named by integers, the same on every device: Philox4x32-10 (Salmon et al. 2011,
doi:10.1145/2063384.2063405)."""

from collections.abc import Sequence

from torch import Tensor

ROUNDS = 10
FACTORS, KEY_STEPS = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)
BITS = 0xFFFFFFFF


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
