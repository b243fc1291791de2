"""A GGUF file as an ordinary model directory, so that it loads in a second and by plain transformers."""

import shutil
import tempfile
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

PROBE = "What is 3 + 4?"
LEFTOVERS = ("quantization_config", "_model_name_or_path")


def convert(gguf: Path, directory: Path) -> None:
    """Write `gguf` to `directory`: fp32 safetensors, configuration, tokenizer and chat template.

    Written aside, checked and renamed, so that `directory` is whole or absent.

    Raises:
        ValueError: the written model's logits are not those of the GGUF.
    """
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    model = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    directory.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=".converting-", dir=directory.parent))
    try:
        _plain(model).save_pretrained(aside)
        tokenizer.save_pretrained(aside)
        _check(aside, model)
        _open_to_readers(aside)
        aside.rename(directory)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _plain(model: PreTrainedModel) -> PreTrainedModel:
    """The same weights without the mark of quantization, with which transformers would not save them."""
    fields = {name: value for name, value in model.config.to_dict().items() if name not in LEFTOVERS}
    plain = type(model)(type(model.config).from_dict(fields))
    plain.load_state_dict(model.state_dict())
    plain.generation_config = model.generation_config
    return plain


def _open_to_readers(directory: Path) -> None:
    """Made private by its writers, though the server may run as another user."""
    directory.chmod(0o755)
    for file in directory.iterdir():
        file.chmod(0o644)


@torch.inference_mode()
def _check(directory: Path, model: PreTrainedModel) -> None:
    tokenizer = AutoTokenizer.from_pretrained(directory)
    tokens_BT = tokenizer(PROBE, return_tensors="pt").input_ids
    written = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32)
    if not torch.equal(written(tokens_BT).logits, model(tokens_BT).logits):
        raise ValueError(f"{directory} does not give the logits of the file that it was made from")
