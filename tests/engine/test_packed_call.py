import pytest
import torch

from tests.engine.calls import packed
from workers.engine.training.micro_batches import Family, MicroBatch, PackedCall

CPU = torch.device("cpu")
SAMPLES = [([1, 2, 3], [11, 12, 13]), ([], []), ([4, 5, 6, 7], [14, 15, 16, 17])]
WEIGHTS: list[list[float]] = [[0, 1, 0], [], [1, 0, 0.5, 0]]


def whole(returns: bool) -> MicroBatch:
    call = PackedCall(packed(SAMPLES, weights=WEIGHTS, return_logprobs=returns))
    (families,) = call.cut(100, shares=True)
    return call.micro_batch(families, CPU)


@pytest.mark.parametrize(("returns", "segments"), [(False, [(0, [2]), (0, [3])]), (True, [(0, [3]), (0, [4])])])
def test_a_sample_is_run_up_to_its_last_wanted_token_only(returns: bool, segments: list[tuple[int, list[int]]]) -> None:
    assert whole(returns).segments == segments


def test_a_micro_batch_is_packed_and_names_the_wanted_tokens() -> None:
    batch = whole(returns=False)
    assert batch.tokens_T.tolist() == [1, 2, 4, 5, 6]
    assert batch.positions_T.tolist() == [0, 1, 0, 1, 2]
    assert batch.rows_N.tolist() == [1, 2, 4]
    assert batch.index_N.tolist() == [1, 3, 5]


def test_rows_of_a_prefix_predict_tokens_of_every_sample() -> None:
    samples = [([1, 2, 3], [2, 3, 4]), ([9], [9]), ([1, 2, 5, 6], [2, 5, 6, 7])]
    call = PackedCall(packed(samples, weights=[[0, 1, 1], [1], [0, 1, 1, 1]]))
    batch = call.micro_batch([Family(2, [0, 2]), Family(0, [1])], CPU)
    assert batch.tokens_T.tolist() == [1, 2, 3, 5, 6, 9]
    assert batch.positions_T.tolist() == [0, 1, 2, 2, 3, 0]
    assert batch.segments == [(2, [1, 2]), (0, [1])]
    assert batch.rows_N.tolist() == [1, 2, 1, 3, 4, 5]
    assert batch.index_N.tolist() == [1, 2, 5, 6, 7, 3]
