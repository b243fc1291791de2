"""What is known of a base model without loading it."""

import msgspec

# Of which a tokenizer is made; a folder that has none of them has no tokenizer.
TOKENIZER_FILES = (
    "tokenizer.json", "tokenizer.model", "tokenizer_config.json", "spiece.model", "vocab.json", "vocab.txt",
    "tekken.json",
)  # fmt: skip
NO_TOKENIZER = "the model's folder has no tokenizer"


class ModelCard(msgspec.Struct, frozen=True, kw_only=True):
    """A base model's name and the limits that requests are checked against.

    `context_length` is in tokens. `tokenizer_fault` says why stop strings cannot be honoured, and is empty where they
    can. `adapter_width` is the number of weights of an adapter of rank 1.
    """

    name: str
    vocab_size: int
    context_length: int
    tokenizer_fault: str = ""
    adapter_width: int = 0
