"""Whether a model directory can be served, as far as its files tell without loading a tensor."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from domain.model import Described, ModelCard
from models.config import NAME, read_card, refuse_quantized, stated_config
from models.files import refuse_strange_files
from models.json_file import read_object
from models.sizes import refuse_excess
from models.tokenizer_file import tokenizer_fault
from models.weights import StoredTensor, read_tensors

# What describes a directory: from its file alone, or with what is known of the model's class.
Describe = Callable[[Path], Described]

GENERATION = "generation_config.json"
ADAPTER = "adapter_config.json"


def inspect(name: str, directory: Path, describe: Describe) -> ModelCard:
    """The card of the model, once its files have been looked at.

    Raises:
        ValueError: it cannot be served. The sentence names the file, what is wrong with it, and what to do.
    """
    refuse_strange_files(directory)
    stated = stated_config(directory)
    _refuse_other_sources(directory, stated)
    refuse_quantized(stated)
    # Before the model's class makes anything of it.
    refuse_excess(stated)
    tensors = read_tensors(directory)
    card = read_card(name, describe(directory), tokenizer_fault(directory))
    _check_vocabulary(card, tensors)
    return card


def _refuse_other_sources(directory: Path, stated: Mapping[str, Any]) -> None:
    """Files that would have transformers read other weights than the directory's own, or that it cannot read."""
    if (directory / ADAPTER).is_file():
        raise ValueError(f"{ADAPTER} makes it a PEFT adapter; merge it into its base model, or remove that file")
    if stated.get("transformers_weights"):
        raise ValueError(f"{NAME} names a weights file of its own (transformers_weights): call it model.safetensors")
    if (directory / GENERATION).is_file():
        read_object(directory / GENERATION)


def _check_vocabulary(card: ModelCard, tensors: Mapping[str, StoredTensor]) -> None:
    if not any(card.vocab_size in tensor.shape for tensor in tensors.values()):
        held = [f"{name} is {list(tensor.shape)}" for name, tensor in tensors.items() if _is_embedding(name)]
        raise ValueError(
            f"{NAME} gives vocab_size as {card.vocab_size}, and no tensor has as many rows"
            + (f" ({held[0]})" if held else "")
            + "; correct the one or the other"
        )


def _is_embedding(name: str) -> bool:
    return name.endswith(".weight") and ("embed" in name or "wte" in name)
