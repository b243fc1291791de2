import numpy as np
import pytest

from workers.engine.micro_batches import cut


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
def test_groups_keep_the_order_and_are_within_the_size(
    lengths: list[int], max_tokens: int, groups: list[list[int]]
) -> None:
    assert cut(np.array(lengths, np.int64), max_tokens) == groups
