"""The size of an adapter, told from a model's configuration alone, against the model itself."""

from pathlib import Path
from typing import Any

import pytest
from transformers import AutoConfig, AutoModelForCausalLM

from models.config import read_card, stated_model
from testing.tiny_model import make_tiny_model

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


@pytest.mark.parametrize(
    ("family", "config"),
    [("llama", {}), ("llama", {"head_dim": 16}), ("qwen2", {}), ("qwen3", {"head_dim": 24}), ("mistral", {})],
)
def test_it_is_the_inputs_and_outputs_of_every_projection(tmp_path: Path, family: str, config: dict[str, Any]) -> None:
    directory = make_tiny_model(tmp_path / "model", family=family, layers=3, **config)
    model = AutoModelForCausalLM.from_pretrained(directory)
    weights = [module.weight for name, module in model.named_modules() if name.rpartition(".")[2] in PROJECTIONS]
    assert len(weights) == 3 * len(PROJECTIONS)
    card = read_card("model", stated_model(directory))
    assert card.adapter_width == sum(sum(weight.shape) for weight in weights)


def test_it_is_at_least_as_much_for_a_family_with_other_names(tmp_path: Path) -> None:
    sizes = {"n_layer": 3, "n_embd": 32, "n_inner": 64, "n_head": 4, "n_positions": 64, "rotary_dim": 8}
    config = AutoConfig.for_model("gptj", vocab_size=100, bos_token_id=None, eos_token_id=0, **sizes)
    config.save_pretrained(tmp_path)
    model = AutoModelForCausalLM.from_config(config)
    weights = [module.weight for name, module in model.named_modules() if name.rpartition(".")[2] in PROJECTIONS]
    assert weights
    card = read_card("model", stated_model(tmp_path))
    assert card.adapter_width >= sum(sum(weight.shape) for weight in weights)


def test_a_model_that_does_not_say_its_sizes_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"vocab_size": 32, "max_position_embeddings": 128, "hidden_size": 8}')
    with pytest.raises(ValueError, match="num_hidden_layers"):
        read_card("model", stated_model(tmp_path))
