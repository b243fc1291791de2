"""What is known of a base model without loading it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

# Of which a tokenizer is made; a folder that has none of them has no tokenizer.
TOKENIZER_FILES = (
    "tokenizer.json", "tokenizer.model", "tokenizer_config.json", "spiece.model", "vocab.json", "vocab.txt",
    "tekken.json",
)  # fmt: skip
NO_TOKENIZER = "the model's folder has no tokenizer"


class Adaptation(msgspec.Struct, frozen=True, kw_only=True):
    """What an adapter changes of a decoder's layers, `modules`, and what it leaves there as it is, `left_out`: experts
    and what PEFT takes for them. Names are within a layer. `width` is the number of weights of an adapter of rank 1.
    """

    modules: tuple[str, ...]
    left_out: tuple[str, ...]
    width: int


class Described(NamedTuple):
    """What a model's directory says: its configuration's fields and, where its class is known, what is adapted."""

    fields: Mapping[str, Any]
    adaptation: Adaptation | None = None


class ModelCard(msgspec.Struct, frozen=True, kw_only=True):
    """A base model's name and the limits that requests are checked against.

    `context_length` is in tokens. `tokenizer_fault` says why stop strings cannot be honoured, and is empty where they
    can. `adapter_width` is the number of weights of an adapter of rank 1. `adapted` and `left_out` are as in
    `Adaptation`, and both empty where its class is not known.
    """

    name: str
    vocab_size: int
    context_length: int
    tokenizer_fault: str = ""
    adapter_width: int = 0
    adapted: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
