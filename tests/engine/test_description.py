"""What a worker announces of a model without its weights is what the model in memory has."""

from pathlib import Path

import pytest
import torch

from domain.session import LoraConfig, SessionSpec
from models.catalog import Catalog
from tests.model_table import make_family
from workers.engine.adapters.adapter import Adapter
from workers.engine.loading.base_model import BaseModel
from workers.engine.loading.description import describe

CPU = torch.device("cpu")
ATTENTION = ("self_attn.k_proj", "self_attn.o_proj", "self_attn.q_proj", "self_attn.v_proj")
MLP = ("mlp.down_proj", "mlp.gate_proj", "mlp.up_proj")


@pytest.mark.parametrize(
    "family",
    ["llama", "phi3", "gemma2", "gemma3", "gemma3n_text", "gemma4_text", "qwen3_moe", "mixtral", "deepseek_v3"],
)
def test_an_adapter_takes_the_bytes_that_its_session_is_placed_by(family: str, tmp_path: Path) -> None:
    directory = make_family(family, tmp_path / "model")
    lora = LoraConfig(rank=3)
    adapter = Adapter(BaseModel(directory, CPU, torch.float32).groups, lora, 0, CPU)
    (card,) = Catalog([tmp_path], describe).cards()
    held = (adapter.weights, adapter.gradients, adapter.exp_avg, adapter.exp_avg_sq)
    assert SessionSpec(base_model=card, lora=lora, seed=0).adapter_bytes == sum(tensor.nbytes for tensor in held)


@pytest.mark.parametrize(
    ("family", "adapted", "left_out"),
    [
        ("llama", (*MLP, *ATTENTION), ()),
        ("phi3", ("mlp.down_proj", "mlp.gate_up_proj", "self_attn.o_proj", "self_attn.qkv_proj"), ()),
        ("mixtral", ATTENTION, ("mlp.experts.down_proj", "mlp.experts.gate_up_proj", "mlp.gate")),
    ],
)
def test_a_card_says_what_is_adapted_and_what_of_a_layer_is_not(
    family: str, adapted: tuple[str, ...], left_out: tuple[str, ...], tmp_path: Path
) -> None:
    make_family(family, tmp_path / "model")
    (card,) = Catalog([tmp_path], describe).cards()
    assert (card.adapted, card.left_out) == (adapted, left_out)


@pytest.mark.parametrize(
    ("family", "sentence"),
    [("falcon_mamba", "layers of type linear_attention"), ("gpt2", "an adapter would leave out attn.c_attn")],
)
def test_a_model_whose_layers_cannot_be_adapted_is_refused_at_start(family: str, sentence: str, tmp_path: Path) -> None:
    make_family(family, tmp_path / "model")
    catalog = Catalog([tmp_path], describe)
    assert not catalog.cards() and sentence in catalog.refused["model"]
