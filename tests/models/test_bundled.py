"""The bundled model, from its directory and by plain transformers."""

import json
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from domain.model import ModelCard
from models import bundled
from models.catalog import Catalog


@pytest.fixture(scope="module")
def directory() -> Path:
    return bundled.install()


def test_the_catalog_serves_it_under_its_hub_name(directory: Path) -> None:
    catalog = Catalog([bundled.DIRECTORY])
    # Inputs and outputs of q, o, k, v, gate, up and down, in each of 30 layers.
    width = 30 * (2 * (576 + 576) + 2 * (576 + 192) + 3 * (576 + 1536))
    name = "HuggingFaceTB/SmolLM2-135M-Instruct"
    card = ModelCard(name=name, vocab_size=49152, context_length=8192, adapter_width=width)
    assert card in catalog.cards()
    assert catalog.directory(card.name) == directory


def test_its_configuration_keeps_nothing_of_the_file_it_was_made_from(directory: Path) -> None:
    config = json.loads((directory / "config.json").read_text())
    assert "quantization_config" not in config and "gguf" not in json.dumps(config).lower()


def test_it_answers_a_sum_in_its_chat_template(directory: Path) -> None:
    """Weights in the wrong order (the rotary halves of q and k, say) load well and answer nonsense."""
    tokenizer = AutoTokenizer.from_pretrained(directory)
    model = AutoModelForCausalLM.from_pretrained(directory)
    question = [{"role": "user", "content": "What is 3 + 4?"}]
    prompt = tokenizer.apply_chat_template(question, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    with torch.inference_mode():
        answer = model.generate(**prompt, do_sample=False, max_new_tokens=12)[0, prompt.input_ids.shape[1] :]
    assert "7" in tokenizer.decode(answer)
