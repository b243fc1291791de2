import numpy as np
import pytest

from workers.engine.training.micro_batches import LEAST_PREFIX, Family, cut

PROMPT = list(range(LEAST_PREFIX))


def passes(samples: list[list[int]], max_tokens: int, shares: bool = True) -> list[list[tuple[int, list[int]]]]:
    found = cut([np.array(sample, np.int32) for sample in samples], max_tokens, shares)
    return [[(family.prefix, family.samples) for family in families] for families in found]


@pytest.mark.parametrize(
    ("lengths", "max_tokens", "groups"),
    [
        ([], 8, []),
        ([0, 0], 8, []),
        ([3, 5, 0, 5], 10, [[0, 1], [3]]),
        ([1, 1, 1, 1], 2, [[0, 1], [2, 3]]),
        ([2, 20, 2, 2], 8, [[0], [1], [2, 3]]),
        ([4, 3, 2, 3], 9, [[0, 1, 2], [3]]),
    ],
)
def test_passes_keep_the_order_and_are_within_the_size(
    lengths: list[int], max_tokens: int, groups: list[list[int]]
) -> None:
    samples = [[100 * index + k for k in range(length)] for index, length in enumerate(lengths)]
    assert passes(samples, max_tokens) == [[(0, [index]) for index in group] for group in groups]


@pytest.mark.parametrize(
    ("endings", "families"),
    [
        ([[50], [60, 61], [70]], [(16, [0, 1, 2])]),
        # The first two go on alike for two tokens more, the third does not.
        ([[50, 51, 52], [50, 51, 53], [70]], [(16, [0, 1, 2])]),
        # A sample's last token is always its own.
        ([[50], [50]], [(16, [0, 1])]),
        ([[], [50]], [(0, [0]), (0, [1])]),
    ],
)
def test_samples_that_begin_alike_are_a_family(endings: list[list[int]], families: list[tuple[int, list[int]]]) -> None:
    assert passes([PROMPT + ending for ending in endings], 1000) == [families]


def test_a_family_does_not_give_up_a_long_prefix_for_a_stranger_with_a_short_one() -> None:
    long = [*PROMPT, *range(100, 140)]
    samples = [[*long, 1], [*long, 2], [*PROMPT, 3, 4], [*PROMPT, 5, 6]]
    assert passes(samples, 1000) == [[(56, [0, 1]), (16, [2, 3])]]


def test_a_prefix_counts_once_and_a_family_that_is_too_long_begins_again() -> None:
    samples = [[*PROMPT, token] for token in (50, 51, 52, 53)]
    assert passes(samples, 18) == [[(16, [0, 1])], [(16, [2, 3])]]


def test_nothing_is_shared_where_it_must_not_be() -> None:
    assert passes([[*PROMPT, 50], [*PROMPT, 51]], 1000, shares=False) == [[(0, [0]), (0, [1])]]


def test_a_family_of_one_has_no_prefix() -> None:
    assert cut([np.arange(40, dtype=np.int32)], 8, True) == [[Family(0, [0])]]
