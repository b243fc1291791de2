"""The adapted model against stock PEFT with the same matrices."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from peft import LoraConfig as PeftConfig
from peft import get_peft_model
from transformers import AutoModelForCausalLM

from domain.session import LoraConfig
from testing.tiny_model import PROJECTIONS
from tests.engine.backend import backend_of
from tests.engine.calls import random_tokens
from tests.engine.configured_kernels import choose_configured
from workers.engine.adapters.adapter import Adapter
from workers.engine.adapters.dropout import Dropout
from workers.engine.adapters.layout import Group, Pair, Shape
from workers.engine.adapters.rows import AdapterRows, grouped, rows_of
from workers.engine.backends.attention_layer import whole
from workers.engine.decoder.adapted_linear import AdaptedLinear
from workers.engine.decoder.forward_pass import ForwardPass
from workers.engine.kernels.kernel import choose
from workers.engine.loading.base_model import BaseModel

CPU = torch.device("cpu")


@pytest.fixture(scope="module", params=["native", "torch"])
def base(request: pytest.FixtureRequest, tiny: Path) -> Iterator[BaseModel]:
    choose(request.param)
    yield BaseModel(tiny, CPU, torch.float32)
    choose_configured()


def adapter_of(base: BaseModel, rank: int, alpha: int, seed: int = 0) -> Adapter:
    """With B drawn too, so that it does something."""
    adapter = Adapter(base.groups, LoraConfig(rank=rank, alpha=alpha), seed, CPU)
    for pair in pairs_of(adapter):
        pair.B.normal_(0, 0.1, generator=torch.Generator().manual_seed(seed + 1))
    return adapter


def pairs_of(adapter: Adapter) -> list[Pair]:
    return adapter.layout.pairs(adapter.weights)


def hidden(base: BaseModel, tokens: torch.Tensor, lengths: list[int], adapter_rows: list[AdapterRows]) -> torch.Tensor:
    positions = torch.cat([torch.arange(length) for length in lengths])
    return base.hidden(ForwardPass(tokens, positions, base.backend.attention(whole(lengths)), adapter_rows))


def peft_of(directory: Path, adapter: Adapter, alpha: int) -> torch.nn.Module:
    model = AutoModelForCausalLM.from_pretrained(directory)
    model = get_peft_model(model, PeftConfig(r=adapter.rank, lora_alpha=alpha, target_modules=list(PROJECTIONS)))
    layers = [module for module in model.modules() if hasattr(module, "lora_A") and hasattr(module, "lora_B")]
    for layer, pair in zip(layers, pairs_of(adapter), strict=True):
        layer.lora_A["default"].weight.data.copy_(pair.A)
        layer.lora_B["default"].weight.data.copy_(pair.B)
    return model.eval()


@pytest.mark.parametrize(("rank", "alpha"), [(4, 16), (64, 16), (8, 16)])
def test_logits_and_gradients_equal_those_of_peft_for_any_rank_and_alpha(
    tiny: Path, base: BaseModel, rank: int, alpha: int
) -> None:
    adapter = adapter_of(base, rank, alpha)
    peft = peft_of(tiny, adapter, alpha)
    tokens = torch.from_numpy(random_tokens(1, 24)).long()
    ours = hidden(base, tokens, [12, 12], [AdapterRows(adapter, slice(0, 24))]) @ base.head.dense().T
    theirs = peft(input_ids=tokens.view(2, 12)).logits.flatten(0, 1)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
    flat = torch.zeros_like(adapter.weights)
    views = [leaf for matrices in adapter.layout.matrices(flat) for leaf in matrices.leaves]
    for view, leaf in zip(views, torch.autograd.grad(ours.square().mean(), adapter.leaves), strict=True):
        view.copy_(leaf)
    gradients = [matrix for pair in adapter.layout.pairs(flat) for matrix in (pair.A, pair.B)]
    theirs.square().mean().backward()
    expected = [parameter.grad for name, parameter in peft.named_parameters() if "lora_" in name]
    for gradient, other in zip(gradients, expected, strict=True):
        torch.testing.assert_close(gradient, other, rtol=1e-3, atol=1e-4)


def test_a_fresh_adapter_changes_nothing_and_comes_from_its_seed(base: BaseModel) -> None:
    tokens = torch.arange(10)
    fresh = Adapter(base.groups, LoraConfig(rank=3, alpha=6), 7, CPU)
    assert torch.equal(hidden(base, tokens, [10], [AdapterRows(fresh, slice(0, 10))]), hidden(base, tokens, [10], []))
    again, other = (Adapter(base.groups, LoraConfig(rank=3, alpha=6), seed, CPU) for seed in (7, 8))
    assert torch.equal(fresh.weights, again.weights)
    assert not torch.equal(fresh.weights, other.weights)


def test_a_is_uniform_within_one_over_the_root_of_its_inputs_and_b_is_zero(base: BaseModel) -> None:
    adapter = Adapter(base.groups, LoraConfig(rank=64), 0, CPU)
    for shape, pair in zip(adapter.layout.shapes, pairs_of(adapter), strict=True):
        bound = shape.inputs**-0.5
        assert pair.A.shape == (64, shape.inputs)
        assert pair.B.shape == (shape.outputs, 64)
        assert pair.A.abs().max() <= bound
        assert pair.A.std().item() == pytest.approx(bound / 3**0.5, rel=0.05)
        assert not pair.B.any()


def test_segments_of_one_pass_are_each_served_by_their_own_adapter(base: BaseModel) -> None:
    first, second = adapter_of(base, 4, 8, seed=1), adapter_of(base, 8, 8, seed=2)
    adapters, lengths = [first, second, first], [10, 3, 7]
    segments = [torch.from_numpy(random_tokens(length, length)).long() for length in lengths]
    order = grouped(adapters)
    assert order == [0, 2, 1]
    lengths = [lengths[index] for index in order]
    adapter_rows = rows_of([adapters[index] for index in order], lengths)
    assert [rows.rows for rows in adapter_rows] == [slice(0, 17), slice(17, 20)]
    with torch.no_grad():
        together = hidden(base, torch.cat([segments[index] for index in order]), lengths, adapter_rows)
        for index, rows in zip(order, [slice(0, 10), slice(10, 17), slice(17, 20)], strict=True):
            alone = [AdapterRows(adapters[index], slice(0, len(segments[index])))]
            expected = hidden(base, segments[index], [len(segments[index])], alone)
            torch.testing.assert_close(together[rows], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("outputs", [(8, 4), (64, 32)])
@pytest.mark.parametrize("rank", [3, 16, 20])
@pytest.mark.usefixtures("kernels")
def test_dropout_gradients_are_those_of_the_masked_formula(rank: int, outputs: tuple[int, int]) -> None:
    torch.manual_seed(0)
    shapes = (Shape("q", 12, outputs[0]), Shape("k", 12, outputs[1]))
    adapter = Adapter((Group(shapes),), LoraConfig(rank=rank, alpha=2 * rank), 0, CPU)
    weight, x = torch.randn(sum(outputs), 12), torch.randn(9, 12, requires_grad=True)
    (matrices,) = adapter.matrices
    for b in matrices.Bs:
        with torch.no_grad():
            b.normal_()
    dropout = Dropout(0.4, 3, [0, 1], [5, 4])
    backend = backend_of()
    mask = backend.dropout(torch.ones(9, 12), dropout, 0)
    positions = torch.arange(9)
    forward_pass = ForwardPass(
        positions, positions, backend.attention(whole([9])), [AdapterRows(adapter, slice(0, 9), dropout)]
    )
    ours = AdaptedLinear(backend.linear(weight), 0, backend)(x, forward_pass)
    halfway = (x * mask) @ matrices.A.T
    low_rank = [half @ b.T for half, b in zip(halfway.chunk(2, 1), matrices.Bs, strict=True)]
    plain = x @ weight.T + 2.0 * torch.cat(low_rank, 1)
    torch.testing.assert_close(ours, plain)
    upstream = torch.randn_like(ours)
    inputs = [x, *matrices.leaves]
    for gradient, expected in zip(
        torch.autograd.grad(ours, inputs, upstream), torch.autograd.grad(plain, inputs, upstream), strict=True
    ):
        torch.testing.assert_close(gradient, expected, rtol=1e-4, atol=1e-5)
