"""Cutting a call's samples into forward passes of bounded size."""

import numpy as np


def cut(lengths: np.ndarray, max_tokens: int) -> list[list[int]]:
    """Groups of sample indices whose padded size, count * longest, is at most `max_tokens`.

    Samples of length 0 are left out; one longer than `max_tokens` is a group of its own. Longest first, so that
    padding is small and memory runs out at once or not at all; equal lengths keep their order.
    """
    groups: list[list[int]] = []
    for index in np.argsort(-lengths, kind="stable").tolist():
        if lengths[index] == 0:
            break
        if groups and (len(groups[-1]) + 1) * lengths[groups[-1][0]] <= max_tokens:
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups
