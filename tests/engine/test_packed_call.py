import torch

from tests.engine.asking import packed
from workers.engine.packed_call import PackedCall

SAMPLES = [([1, 2, 3], [11, 12, 13]), ([], []), ([4, 5, 6, 7], [14, 15, 16, 17])]
WEIGHTS: list[list[float]] = [[0, 1, 0], [], [1, 0, 0.5, 0]]


def test_a_sample_is_run_up_to_its_last_trained_token_only() -> None:
    call = PackedCall(packed(SAMPLES, weights=WEIGHTS))
    assert call.lengths.tolist() == [2, 0, 3]


def test_all_of_it_is_run_when_its_logprobs_are_returned() -> None:
    call = PackedCall(packed(SAMPLES, weights=WEIGHTS, return_logprobs=True))
    assert call.lengths.tolist() == [3, 0, 4]


def test_a_micro_batch_is_packed_and_names_the_wanted_tokens() -> None:
    batch = PackedCall(packed(SAMPLES, weights=WEIGHTS)).micro_batch([0, 2], torch.device("cpu"))
    assert batch.tokens_T.tolist() == [1, 2, 4, 5, 6]
    assert batch.positions_T.tolist() == [0, 1, 0, 1, 2]
    assert batch.lengths == [2, 3]
    assert batch.rows_N.tolist() == [1, 2, 4]
    assert batch.index_N.tolist() == [1, 3, 5]
