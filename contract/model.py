"""What is known of a base model without loading it."""

import msgspec


class ModelCard(msgspec.Struct, frozen=True, kw_only=True):
    """A base model's name and the limits that requests are checked against.

    `context_length` is in tokens; `has_tokenizer` says whether stop strings can be honoured. `adapter_width` is the
    number of weights of an adapter of rank 1.
    """

    name: str
    vocab_size: int
    context_length: int
    has_tokenizer: bool = True
    adapter_width: int = 0
