"""A token's attention is right, and the same to the bit however it is computed."""

from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.engine.backend import backend_of
from workers.engine.backends.attention_layer import AttentionLayer, whole
from workers.engine.backends.kv_cache import KvCache, Span

HEADS = [(9, 3, 64), (4, 2, 16), (8, 8, 32), (32, 8, 128), (14, 2, 8)]
DTYPES = [torch.float32, torch.bfloat16]
CPU = torch.device("cpu")
# Beyond this the order of torch's kernels changes with lengths.
LONGEST = {"torch": 192, "native": 300}
FAMILIES = [[(0, [1])], [(20, [5, 1, 40]), (0, [9]), (1, [2, 3]), (37, [1])], [(100, [130, 3])]]


def random_heads(rows: int, heads: int, kv_heads: int, size: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """Parts of one tensor, as a model's layers have them."""
    torch.manual_seed(0)
    qkv = torch.randn(rows, heads + 2 * kv_heads, size).to(dtype)
    return qkv[:, :heads], qkv[:, heads:-kv_heads], qkv[:, -kv_heads:]


def filled_cache(k: Tensor, v: Tensor, lengths: list[int]) -> KvCache:
    """Row b holds the first `lengths[b]` tokens."""
    cache = KvCache()
    cache.reserve(len(lengths), max(lengths) + 1)
    spans = [Span(row, 0, length) for row, length in enumerate(lengths) if length]
    packed_k, packed_v = (torch.cat([part[: span.length] for span in spans]) for part in (k, v))
    backend_of().span_attention(cache, spans, CPU)(AttentionLayer(0, 1.0), packed_k, packed_k, packed_v)
    return cache


def _for_heads(extra: dict[str, Any], heads: int) -> dict[str, Any]:
    return {name: value[:heads] if isinstance(value, Tensor) else value for name, value in extra.items()}


def plain(
    families: list[tuple[int, list[int]]], layer: AttentionLayer, q_THD: Tensor, k_TKD: Tensor, v_TKD: Tensor
) -> Tensor:
    """By the definition, one query at a time."""
    group, seen, start = q_THD.shape[1] // k_TKD.shape[1], [], 0
    for prefix, suffixes in families:
        first, start = list(range(start, start + prefix)), start + prefix
        sequences = [[], *([start + sum(suffixes[:n]) + i for i in range(size)] for n, size in enumerate(suffixes))]
        start += sum(suffixes)
        for rows in sequences:
            own = rows or first
            tokens = first + rows
            for query in own:
                keys = tokens[: tokens.index(query) + 1][-(layer.window or len(tokens)) :]
                k, v = (part[keys].repeat_interleave(group, 1) for part in (k_TKD, v_TKD))
                scores_MH = torch.einsum("hd,mhd->mh", q_THD[query], k) * layer.scale
                if layer.softcap:
                    scores_MH = torch.tanh(scores_MH / layer.softcap) * layer.softcap
                peers_MH = scores_MH if layer.sinks_H is None else torch.cat([scores_MH, layer.sinks_H[None].double()])
                weights_MH = scores_MH.exp() / peers_MH.exp().sum(0)
                seen.append(torch.einsum("mh,mhd->hd", weights_MH, v))
    return torch.stack(seen)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("window", [None, 25])
@pytest.mark.parametrize("heads", [(6, 2, 48), (4, 4, 8)])
@pytest.mark.parametrize("extra", [{}, {"softcap": 3.0}, {"sinks_H": torch.arange(6) * 0.7}])
@pytest.mark.parametrize("families", FAMILIES)
def test_values_and_gradients_are_those_of_the_definition_in_float64(
    families: list[tuple[int, list[int]]],
    extra: dict[str, Any],
    heads: tuple[int, int, int],
    window: int | None,
    dtype: torch.dtype,
) -> None:
    rows = sum(prefix + sum(suffixes) for prefix, suffixes in families)
    layer, narrow = AttentionLayer(0, 0.3, window, **_for_heads(extra, heads[0])), heads[2] - 5
    q, k, v = random_heads(rows, *heads, dtype)
    parts = [part.requires_grad_() for part in (q.detach(), k.detach(), v[..., :narrow].detach())]
    wide = [part.detach().double().requires_grad_() for part in parts]
    seen, expected = backend_of().attention(families)(layer, *parts), plain(families, layer, *wide)
    upstream = torch.randn(seen.shape).to(dtype)
    grads = torch.autograd.grad(seen, parts, upstream)
    expected_grads = torch.autograd.grad(expected, wide, upstream.double())
    tolerance = 2e-2 if dtype is torch.bfloat16 else 1e-5
    for found, right in zip((seen, *grads), (expected, *expected_grads), strict=True):
        assert (found.double() - right).abs().max() <= tolerance * right.abs().max().clamp(min=1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("extra", [{"softcap": 3.0, "window": 40}, {"sinks_H": torch.arange(6) * 0.7}])
def test_a_token_with_capped_scores_or_sinks_is_decoded_as_in_a_pass(extra: dict[str, Any], dtype: torch.dtype) -> None:
    q, k, v = random_heads(150, 6, 2, 24, dtype)
    layer, lengths = AttentionLayer(0, 0.4, **extra), [1, 60, 64, 65, 150]
    ends = torch.tensor(lengths) - 1
    cache = KvCache()
    cache.reserve(len(lengths), 150)
    before = [Span(row, 0, length - 1) for row, length in enumerate(lengths) if length > 1]
    packed = (torch.cat([part[: span.length] for span in before]) for part in (q, k, v))
    backend_of().span_attention(cache, before, CPU)(layer, *packed)
    newest = (part[ends] for part in (q, k, v))
    decoded = backend_of().decode_attention(cache, range(len(lengths)), ends)(layer, *newest)
    in_pass = backend_of().attention(whole([150]))(layer, q, k, v)
    tolerance = 1e-6 if dtype is torch.float32 else 2**-7
    torch.testing.assert_close(decoded, in_pass[ends], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("heads", HEADS)
def test_a_decoded_token_attends_as_in_a_pass_over_all_of_any_length(
    kernels: str, heads: tuple[int, int, int], dtype: torch.dtype
) -> None:
    longest = LONGEST[kernels]
    q, k, v = random_heads(longest, *heads, dtype)
    layer = AttentionLayer(0, heads[2] ** -0.5)
    lengths = [2, 17, 33, 64, 65, 100, 128, 150, longest, 1]
    ends = torch.tensor(lengths) - 1
    cache = filled_cache(k, v, [length - 1 for length in lengths])
    rows = torch.randperm(len(lengths))
    newest = (part[ends[rows]] for part in (q, k, v))
    step = backend_of().decode_attention(cache, rows.tolist(), ends[rows])
    decoded = step(layer, *newest)[step.order_B]
    for length in (1, 2, 20, 33, 64, 100, 130, longest):
        in_pass = backend_of().attention(whole([length]))(layer, q[:length], k[:length], v[:length])
        for row, end in enumerate(ends.tolist()):
            assert end >= length or torch.equal(in_pass[end], decoded[row].view(heads[0], -1)), (length, end)


@pytest.mark.usefixtures("native")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("window", [None, 30])
def test_a_prompt_in_parts_attends_as_in_one_and_as_in_training(window: int | None, dtype: torch.dtype) -> None:
    q, k, v = random_heads(330, 9, 3, 64, dtype)
    layer, cache = AttentionLayer(0, 0.125, window), KvCache()
    cache.reserve(2, 330)
    borders = [0, 1, 8, 207, 208, 330]
    parts = []
    for start, stop in pairwise(borders):
        both = (torch.cat([part[start:stop], -part[start:stop]]) for part in (q, k, v))
        spans = backend_of().span_attention(cache, [Span(1, start, stop), Span(0, start, stop)], CPU)
        parts.append(spans(layer, *both)[: stop - start])
    in_pass = backend_of().attention(whole([330]))(layer, q, k, v)
    family = backend_of().attention([(207, [123])])(layer, q, k, v)
    assert torch.equal(torch.cat(parts), in_pass)
    assert torch.equal(family, in_pass)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("dtype", DTYPES)
def test_it_does_not_matter_which_row_of_a_batch_a_token_is(dtype: torch.dtype) -> None:
    q, k, v = random_heads(64, 9, 3, 64, dtype)
    layer, rows, length = AttentionLayer(0, 0.125), 50, 40
    cache = filled_cache(k, v, [length] * rows)
    places = torch.full((rows,), length)
    newest = (part[length].expand(rows, -1, -1) for part in (q, k, v))
    seen = backend_of().decode_attention(cache, list(range(rows)), places)(layer, *newest)
    assert torch.equal(seen, seen[:1].expand(rows, -1, -1))


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients_of_a_family_are_the_same_alone_and_beside_others(dtype: torch.dtype) -> None:
    family, others = [(70, [60, 3, 17])], [(0, [90]), (5, [2, 2])]
    own, rest = 150, 99
    q, k, v = random_heads(own + rest, 9, 3, 64, dtype)
    layer, upstream = AttentionLayer(0, 0.125), torch.randn(own + rest, 9, 64).to(dtype)
    alone = grads(family, layer, [part[rest:] for part in (q, k, v)], upstream[rest:])
    beside = grads([*others, *family], layer, [q, k, v], upstream)
    for one, many in zip(alone, beside, strict=True):
        assert torch.equal(one, many[rest:])


def grads(
    families: list[tuple[int, list[int]]], layer: AttentionLayer, parts: list[Tensor], upstream: Tensor
) -> tuple[Tensor, ...]:
    leaves = [part.detach().requires_grad_() for part in parts]
    return torch.autograd.grad(backend_of().attention(families)(layer, *leaves), leaves, upstream)


@pytest.mark.usefixtures("native")
def test_what_a_row_held_before_beyond_its_sequence_is_not_seen() -> None:
    q, k, v = random_heads(20, 9, 3, 64, torch.float32)
    layer, cache = AttentionLayer(0, 0.125), filled_cache(k, v, [19])
    for memory in cache.memory(0, k, v):
        memory[:, :, 10:] = float("nan")
    step = backend_of().decode_attention(cache, [0], torch.tensor([10]))
    decoded = step(layer, *(part[10:11] for part in (q, k, v)))
    assert torch.equal(decoded[0], backend_of().attention(whole([20]))(layer, q, k, v)[10])
