"""Every backend computes what torch's operations compute, at the shapes of models that are served."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from domain.sample import SamplingParams
from domain.session import LoraConfig
from workers.engine.adapters.adapter import Adapter
from workers.engine.adapters.dropout import Dropout
from workers.engine.adapters.layout import Group, Shape
from workers.engine.adapters.rows import AdapterRows
from workers.engine.backends.attention_layer import AttentionLayer, is_cached
from workers.engine.backends.backend import Backend
from workers.engine.backends.choice import NATIVE, TORCH
from workers.engine.backends.kv_cache import KvCache, Span
from workers.engine.backends.pass_adapters import PassAdapters

CPU = torch.device("cpu")
# Relative to the largest number of a result: of fp32's sums, and of a rounding to bf16 or two.
TOLERANCES = {torch.float32: 2e-5, torch.bfloat16: 2.0**-6}
EPS = 1e-5

pytestmark = pytest.mark.usefixtures("native")


@dataclass(frozen=True)
class Model:
    """Its hidden size, query heads, heads of keys and values, size of a head, size inside the MLP, and vocabulary."""

    width: int
    heads: int
    kv_heads: int
    head_size: int
    inner: int
    vocabulary: int


MODELS = {
    "SmolLM2-135M": Model(576, 9, 3, 64, 1536, 49_152),
    "Qwen2.5-0.5B": Model(896, 14, 2, 64, 4864, 151_936),
    "Qwen3-0.6B": Model(1024, 16, 8, 128, 3072, 151_936),
}


@pytest.fixture(params=[NATIVE], ids=lambda backend: backend.name)
def backend(request: pytest.FixtureRequest) -> Backend:
    found: Backend = request.param
    return found


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> Model:
    return MODELS[request.param]


@pytest.fixture(params=TOLERANCES, ids=str)
def dtype(request: pytest.FixtureRequest) -> torch.dtype:
    found: torch.dtype = request.param
    return found


def drawn(*shape: int, dtype: torch.dtype, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def assert_alike(found: Tensor, expected: Tensor, dtype: torch.dtype) -> None:
    assert found.dtype is expected.dtype and found.shape == expected.shape
    wide = expected.double()
    off, allowed = (found.double() - wide).abs().max(), TOLERANCES[dtype] * wide.abs().max()
    assert off <= allowed, f"off by {off:.2e} where {allowed:.2e} is allowed"


def test_frozen_products(backend: Backend, model: Model, dtype: torch.dtype) -> None:
    qkv = (model.heads + 2 * model.kv_heads) * model.head_size
    for outputs, inputs in ((qkv, model.width), (model.width, model.inner)):
        weight, bias = drawn(outputs, inputs, dtype=dtype), drawn(outputs, dtype=dtype, seed=1)
        x, plus = drawn(23, inputs, dtype=dtype, seed=2), drawn(23, outputs, dtype=dtype, seed=3)
        ours, reference = backend.linear(weight, bias), TORCH.linear(weight, bias)
        assert_alike(ours.product(x, plus), reference.product(x, plus), dtype)
        assert_alike(ours.transposed().product(plus), reference.transposed().product(plus), dtype)
        assert torch.equal(ours.dense(), weight)
        assert torch.equal(ours.rows(torch.tensor([7, 0])), weight[[7, 0]])


def adapters_of(model: Model, outputs: list[int]) -> PassAdapters:
    """Rows 0..9 without an adapter, then one with dropout, then one of another rank."""
    group = Group(tuple(Shape(str(place), model.width, size) for place, size in enumerate(outputs)))
    rows = []
    for rank, part, dropout in ((16, slice(10, 40), Dropout(0.3, 5, [2, 4], [13, 17])), (5, slice(40, 64), None)):
        adapter = Adapter((group,), LoraConfig(rank=rank, alpha=2 * rank), rank, CPU)
        with torch.no_grad():
            adapter.weights.normal_(std=0.05, generator=torch.Generator().manual_seed(rank))
        rows.append(AdapterRows(adapter, part, dropout))
    return PassAdapters(64, rows)


def test_low_rank_products_and_their_gradients(backend: Backend, model: Model, dtype: torch.dtype) -> None:
    outputs = [model.heads * model.head_size, *[model.kv_heads * model.head_size] * 2]
    weight, adapters = drawn(sum(outputs), model.width, dtype=dtype) * 0.05, adapters_of(model, outputs)
    x, plus = drawn(64, model.width, dtype=dtype, seed=1), drawn(64, sum(outputs), dtype=dtype, seed=2)
    grad = drawn(64, sum(outputs), dtype=dtype, seed=3)
    ours, reference = backend.linear(weight), TORCH.linear(weight)
    (y, hs), (expected, expected_hs) = (each.adapted(x, adapters, 0, plus) for each in (ours, reference))
    assert_alike(y, expected, dtype)
    (by_x, by_hs), (expected_by_x, expected_by_hs) = (
        each.adapted_backward(grad, adapters, 0, of_input=True) for each in (ours, reference)
    )
    assert by_x is not None and expected_by_x is not None
    assert_alike(by_x, expected_by_x, dtype)
    nothing, alone = ours.adapted_backward(grad, adapters, 0, of_input=False)
    assert nothing is None
    for found, right in zip([*hs, *by_hs, *alone], [*expected_hs, *expected_by_hs, *expected_by_hs], strict=True):
        assert_alike(found, right.to(dtype), dtype)
    assert_alike(backend.outer(hs[0], grad[10:40], 0.5), TORCH.outer(hs[0], grad[10:40], 0.5), dtype)


def test_dropout_keeps_the_same_numbers(backend: Backend, model: Model, dtype: torch.dtype) -> None:
    x, dropout = drawn(30, model.width, dtype=dtype), Dropout(0.3, 5, [2, 4], [13, 17])
    assert torch.equal(backend.dropout(x, dropout, 3), TORCH.dropout(x, dropout, 3))


def test_norms(backend: Backend, model: Model, dtype: torch.dtype) -> None:
    heads = drawn(9, model.heads + 2, model.head_size, dtype=dtype)[:, 1:-1]
    for x in (drawn(23, model.width, dtype=dtype), heads):
        weight, grad = drawn(x.shape[-1], dtype=torch.float32, seed=1), drawn(*x.shape, dtype=dtype, seed=2)
        assert_alike(backend.rms_norm(x, weight, EPS), TORCH.rms_norm(x, weight, EPS), dtype)
        found = backend.rms_norm_backward(x, grad, weight, EPS)
        assert_alike(found, TORCH.rms_norm_backward(x, grad, weight, EPS), dtype)


def test_rotations(backend: Backend, model: Model, dtype: torch.dtype) -> None:
    angles = torch.arange(23)[:, None] * 10.0 ** -torch.linspace(0, 4, model.head_size // 2)
    tables = angles.cos().to(dtype), angles.sin().to(dtype)
    x = drawn(23, model.heads, model.head_size, dtype=dtype)
    ours, reference = backend.rotary(*tables), TORCH.rotary(*tables)
    for back in (False, True):
        assert_alike(ours(x, back=back), reference(x, back=back), dtype)


def test_gated_activations(backend: Backend, model: Model, dtype: torch.dtype) -> None:
    gate_up, grad = drawn(23, 2 * model.inner, dtype=dtype), drawn(23, model.inner, dtype=dtype, seed=1)
    assert_alike(backend.swiglu(gate_up), TORCH.swiglu(gate_up), dtype)
    assert_alike(backend.swiglu_backward(gate_up, grad), TORCH.swiglu_backward(gate_up, grad), dtype)


@pytest.mark.parametrize("window", [None, 40])
def test_attention_over_a_pass(backend: Backend, model: Model, dtype: torch.dtype, window: int | None) -> None:
    families, layer = [(50, [30, 1]), (0, [64])], AttentionLayer(0, model.head_size**-0.5, window)
    qkv = drawn(145, model.heads + 2 * model.kv_heads, model.head_size, dtype=dtype)
    grad = drawn(145, model.heads, model.head_size, dtype=dtype, seed=1)
    results = []
    for each in (backend, TORCH):
        leaf = qkv.clone().requires_grad_()
        parts = torch.split(leaf, [model.heads, model.kv_heads, model.kv_heads], 1)
        seen = each.attention(families)(layer, *parts)
        results.append([seen.detach(), *torch.autograd.grad(seen, leaf, grad)])
    for found, expected in zip(*results, strict=True):
        assert_alike(found, expected, dtype)


def test_attention_from_a_cache(backend: Backend, model: Model, dtype: torch.dtype) -> None:
    layer, lengths = AttentionLayer(0, model.head_size**-0.5), [33, 70]
    sizes = [model.heads, model.kv_heads, model.kv_heads]
    prompts = torch.split(drawn(sum(lengths), sum(sizes), model.head_size, dtype=dtype), sizes, 1)
    newest = torch.split(drawn(len(lengths), sum(sizes), model.head_size, dtype=dtype, seed=1), sizes, 1)
    results = []
    for each in (backend, TORCH):
        cache = KvCache()
        cache.reserve(len(lengths), max(lengths) + 1)
        spans = each.span_attention(cache, [Span(row, 0, length) for row, length in enumerate(lengths)], CPU)
        step = each.decode_attention(cache, [1, 0], torch.tensor(lengths).flip(0))
        assert is_cached(spans) and is_cached(step) and step.order_B.tolist() == [1, 0]
        results.append([spans(layer, *prompts), step(layer, *newest)])
    for found, expected in zip(*results, strict=True):
        assert_alike(found, expected, dtype)


def test_logprobs_and_draws(backend: Backend, model: Model, dtype: torch.dtype) -> None:
    logits = drawn(6, model.vocabulary, dtype=dtype) * 4
    targets = torch.arange(6) * 101
    ours, reference = logits.clone(), logits.clone()
    logprobs, entropies = backend.target_logprobs(ours, targets, computes_grad=True)
    expected_logprobs, expected_entropies = TORCH.target_logprobs(reference, targets, computes_grad=True)
    assert_alike(logprobs, expected_logprobs, dtype)
    assert_alike(ours, reference, dtype)
    # Torch sums them over the whole vocabulary in fp32.
    torch.testing.assert_close(entropies, expected_entropies, rtol=1e-3, atol=1e-3)
    kinds = [SamplingParams(), SamplingParams(temperature=0), SamplingParams(temperature=0.7, top_k=50, top_p=0.9)]
    params, uniforms = kinds * 2, [0.1, 0.5, 0.2, 0.9, 0.4, 0.7]
    tokens, logprobs = backend.draw(logits, params, uniforms)
    expected_tokens, expected_logprobs = TORCH.draw(logits, params, uniforms)
    assert tokens.tolist() == expected_tokens.tolist()
    assert_alike(logprobs, expected_logprobs, dtype)
