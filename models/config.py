"""A model directory's config.json, read for the two numbers that requests are checked against."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from contract.model import ModelCard

# What the model families call their context length.
CONTEXT_LENGTH_KEYS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")


def read_card(name: str, config: Path, *, has_tokenizer: bool) -> ModelCard:
    """The card of the model that the file `config` describes.

    Raises:
        ValueError: the file is not a JSON object, or does not state the vocabulary size or the context length.
    """
    fields = _read_object(config)
    return ModelCard(
        name=name,
        vocab_size=_positive(fields, "vocab_size"),
        context_length=_positive(fields, *CONTEXT_LENGTH_KEYS),
        has_tokenizer=has_tokenizer,
    )


def _read_object(path: Path) -> Mapping[str, Any]:
    try:
        fields = json.loads(path.read_bytes())
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path.name} cannot be read: {error}") from error
    if not isinstance(fields, dict):
        raise ValueError(f"{path.name} is not a JSON object")
    return fields


def _positive(fields: Mapping[str, Any], *keys: str) -> int:
    """The first of `keys` that is stated, at the top or in the text part of a multimodal model."""
    text = fields.get("text_config")
    for part in (fields, text if isinstance(text, dict) else {}):
        for key in keys:
            value = part.get(key)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
    raise ValueError(f"config.json states no positive {' or '.join(keys)}")
