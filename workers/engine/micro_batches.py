"""Cutting a call's samples into forward passes of bounded size."""

import numpy as np


def cut(lengths: np.ndarray, max_tokens: int) -> list[list[int]]:
    """Runs of sample indices whose tokens together are at most `max_tokens`.

    Samples of length 0 are left out; one longer than `max_tokens` is alone. Samples keep their order: those of one
    prompt stand together, and so can share it.
    """
    groups: list[list[int]] = []
    room = 0
    for index in np.flatnonzero(lengths).tolist():
        if lengths[index] > room:
            groups.append([])
            room = max_tokens
        groups[-1].append(index)
        room -= lengths[index]
    return groups
