"""A token's attention is the same to the bit however it is computed."""

import pytest
import torch
from torch import Tensor

from workers.engine.cached_attention import DecodeAttention
from workers.engine.causal_attention import AttentionLayer, causal
from workers.engine.kv_cache import KvCache

HEADS = [(9, 3, 64), (4, 2, 16), (8, 8, 32), (32, 8, 128)]
LONGEST = 192


def random_heads(rows: int, heads: int, kv_heads: int, size: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    q, k, v = (torch.randn(rows, count, size).to(dtype) for count in (heads, kv_heads, kv_heads))
    return q, k, v


def filled_cache(k: Tensor, v: Tensor, lengths: list[int]) -> KvCache:
    """Row b holds the first `lengths[b]` tokens."""
    cache = KvCache()
    cache.reserve(len(lengths), LONGEST)
    for row, length in enumerate(lengths):
        rows = torch.full((length,), row)
        cache.write(0, rows, torch.arange(length), k[:length], v[:length])
    return cache


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("heads", HEADS)
def test_a_decoded_token_attends_as_in_a_pass_over_all_of_any_length(
    heads: tuple[int, int, int], dtype: torch.dtype
) -> None:
    q, k, v = random_heads(LONGEST, *heads, dtype)
    layer = AttentionLayer(0, heads[2] ** -0.5)
    lengths = [1, 2, 17, 33, 64, 65, 100, 128, 150, LONGEST]
    ends = torch.tensor(lengths) - 1
    cache = filled_cache(k, v, [length - 1 for length in lengths])
    decoded = DecodeAttention(cache, list(range(len(lengths))), ends)(layer, q[ends], k[ends], v[ends])
    for length in (1, 2, 20, 33, 64, 100, 130, LONGEST):
        whole = causal(layer, q[:length], k[:length], v[:length])
        for row, end in enumerate(ends.tolist()):
            assert end >= length or torch.equal(whole[end], decoded[row].view(heads[0], -1)), (length, end)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_it_does_not_matter_which_row_of_a_crowd_a_token_is(dtype: torch.dtype) -> None:
    q, k, v = random_heads(64, 9, 3, 64, dtype)
    layer, rows, length = AttentionLayer(0, 0.125), 50, 40
    cache = filled_cache(k, v, [length] * rows)
    places = torch.full((rows,), length)
    newest = (part[length].expand(rows, -1, -1) for part in (q, k, v))
    seen = DecodeAttention(cache, list(range(rows)), places)(layer, *newest)
    assert torch.equal(seen, seen[:1].expand(rows, -1, -1))
