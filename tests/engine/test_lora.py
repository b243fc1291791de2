"""The adapted model against stock PEFT with the same matrices."""

from pathlib import Path

import pytest
import torch
from peft import LoraConfig as PeftConfig
from peft import get_peft_model
from transformers import AutoModelForCausalLM

from contract.session import LoraConfig
from tests.engine.asking import random_tokens
from workers.engine.adapter import Adapter
from workers.engine.base_model import BaseModel
from workers.engine.dropout import Dropout
from workers.engine.lora import TARGETS, AddLora, Route, routes_of

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def base(tiny: Path) -> BaseModel:
    return BaseModel(tiny, CPU, torch.float32)


def adapter_of(base: BaseModel, rank: int, alpha: int, seed: int = 0) -> Adapter:
    """With B drawn too, so that it does something."""
    adapter = Adapter(base.shapes, LoraConfig(rank=rank, alpha=alpha), seed, CPU)
    for pair in adapter.pairs:
        pair.B.data.normal_(0, 0.1, generator=torch.Generator().manual_seed(seed + 1))
    return adapter


def peft_of(directory: Path, adapter: Adapter, alpha: int) -> torch.nn.Module:
    model = AutoModelForCausalLM.from_pretrained(directory)
    model = get_peft_model(model, PeftConfig(r=adapter.rank, lora_alpha=alpha, target_modules=list(TARGETS)))
    layers = [module for module in model.modules() if hasattr(module, "lora_A") and hasattr(module, "lora_B")]
    for layer, pair in zip(layers, adapter.pairs, strict=True):
        layer.lora_A["default"].weight.data.copy_(pair.A)
        layer.lora_B["default"].weight.data.copy_(pair.B)
    return model.eval()


@pytest.mark.parametrize(("rank", "alpha"), [(4, 16), (64, 16), (8, 16)])
def test_logits_and_gradients_equal_those_of_peft_for_any_rank_and_alpha(
    tiny: Path, base: BaseModel, rank: int, alpha: int
) -> None:
    adapter = adapter_of(base, rank, alpha)
    peft = peft_of(tiny, adapter, alpha)
    tokens = torch.from_numpy(random_tokens(1, 24)).long().view(2, 12)
    ours = base.logits(base.hidden(tokens, [Route(adapter)]))
    theirs = peft(input_ids=tokens).logits
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
    gradients = torch.autograd.grad(ours.square().mean(), adapter.leaves)
    theirs.square().mean().backward()
    expected = [parameter.grad for name, parameter in peft.named_parameters() if "lora_" in name]
    for gradient, other in zip(gradients, expected, strict=True):
        torch.testing.assert_close(gradient, other, rtol=1e-3, atol=1e-4)


def test_a_fresh_adapter_changes_nothing_and_comes_from_its_seed(base: BaseModel) -> None:
    tokens = torch.arange(10).view(1, 10)
    fresh = Adapter(base.shapes, LoraConfig(rank=3, alpha=6), 7, CPU)
    assert torch.equal(base.hidden(tokens, [Route(fresh)]), base.hidden(tokens, []))
    again, other = (Adapter(base.shapes, LoraConfig(rank=3, alpha=6), seed, CPU) for seed in (7, 8))
    assert torch.equal(fresh.weights, again.weights)
    assert not torch.equal(fresh.weights, other.weights)


def test_a_is_uniform_within_one_over_the_root_of_its_inputs_and_b_is_zero(base: BaseModel) -> None:
    adapter = Adapter(base.shapes, LoraConfig(rank=64), 0, CPU)
    for shape, pair in zip(base.shapes, adapter.pairs, strict=True):
        bound = shape.inputs**-0.5
        assert pair.A.shape == (64, shape.inputs)
        assert pair.B.shape == (shape.outputs, 64)
        assert pair.A.abs().max() <= bound
        assert pair.A.std().item() == pytest.approx(bound / 3**0.5, rel=0.05)
        assert not pair.B.any()


def test_rows_of_one_batch_are_each_served_by_their_own_adapter(base: BaseModel) -> None:
    first, second = adapter_of(base, 4, 8, seed=1), adapter_of(base, 8, 8, seed=2)
    tokens = torch.from_numpy(random_tokens(2, 30)).long().view(3, 10)
    with torch.no_grad():
        together = base.hidden(tokens, routes_of([first, second, first], CPU))
        for row, adapter in enumerate([first, second, first]):
            alone = base.hidden(tokens[row : row + 1], [Route(adapter)])
            torch.testing.assert_close(together[row], alone[0], rtol=1e-5, atol=1e-5)


def test_dropout_gradients_are_those_of_the_masked_formula(base: BaseModel) -> None:
    adapter = adapter_of(base, 4, 8)
    pair, x = adapter.pairs[0], torch.randn(2, 5, base.shapes[0].inputs, requires_grad=True)
    dropout = Dropout(0.4, 3, [0, 1], [5, 4])
    mask = dropout.mask(0, x)
    y = torch.randn(2, 5, base.shapes[0].outputs, requires_grad=True)
    ours: torch.Tensor = AddLora.apply(  # type: ignore[no-untyped-call]
        y, x, pair.A, pair.B, 2.0, dropout, 0
    )
    plain = y + 2.0 * (x * mask) @ pair.A.T @ pair.B.T
    torch.testing.assert_close(ours, plain)
    upstream = torch.randn_like(ours)
    inputs = [y, x, pair.A, pair.B]
    for gradient, expected in zip(
        torch.autograd.grad(ours, inputs, upstream), torch.autograd.grad(plain, inputs, upstream), strict=True
    ):
        torch.testing.assert_close(gradient, expected, rtol=1e-4, atol=1e-5)


def test_dropout_masks_follow_the_sample_not_the_batch() -> None:
    x = torch.zeros(2, 50, 40)
    together = Dropout(0.25, 9, [3, 5], [50, 30]).mask(2, x)
    alone = Dropout(0.25, 9, [5], [30]).mask(2, torch.zeros(1, 30, 40))
    assert torch.equal(together[1, :30], alone[0])
    assert not together[1, 30:].any()
    assert not torch.equal(together[0, :30], together[1, :30])
    assert sorted(set(together[0].flatten().tolist())) == pytest.approx([0.0, 1 / 0.75])
    assert together[0].mean().item() == pytest.approx(1.0, abs=0.05)
    for other in (Dropout(0.25, 8, [5], [30]).mask(2, x[:1, :30]), Dropout(0.25, 9, [5], [30]).mask(1, x[:1, :30])):
        assert not torch.equal(other, alone)
