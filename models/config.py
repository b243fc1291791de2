"""A model directory's config.json, read for the numbers that requests are checked and placed by."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from contract.model import ModelCard

# What the model families call their context length.
CONTEXT_LENGTH_KEYS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
# Their layers, hidden size, inner size and attention heads.
SIZE_KEYS = (
    ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    ("hidden_size", "n_embd", "d_model"),
    ("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"),
    ("num_attention_heads", "n_head", "n_heads"),
)


def read_card(name: str, config: Path, *, has_tokenizer: bool) -> ModelCard:
    """The card of the model that the file `config` describes.

    Raises:
        ValueError: the file is not a JSON object, or does not state the vocabulary size, the context length or the
            sizes that an adapter's follows from.
    """
    fields = _read_object(config)
    return ModelCard(
        name=name,
        vocab_size=_positive(fields, "vocab_size"),
        context_length=_positive(fields, *CONTEXT_LENGTH_KEYS),
        has_tokenizer=has_tokenizer,
        adapter_width=_adapter_width(fields),
    )


def _adapter_width(fields: Mapping[str, Any]) -> int:
    """Inputs and outputs of all layers that are adapted, taken together: q, k, v, o, gate, up and down projections of a
    dense decoder. A model that has some of them under other names gets a smaller adapter than this."""
    layers, hidden, inner, heads = (_positive(fields, *keys) for keys in SIZE_KEYS)
    head = _stated(fields, "head_dim") or hidden // heads
    queries, keys = heads * head, (_stated(fields, "num_key_value_heads") or heads) * head
    return layers * (2 * (hidden + queries) + 2 * (hidden + keys) + 3 * (hidden + inner))


def _read_object(path: Path) -> Mapping[str, Any]:
    try:
        fields = json.loads(path.read_bytes())
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path.name} cannot be read: {error}") from error
    if not isinstance(fields, dict):
        raise ValueError(f"{path.name} is not a JSON object")
    return fields


def _positive(fields: Mapping[str, Any], *keys: str) -> int:
    value = _stated(fields, *keys)
    if value is None:
        raise ValueError(f"config.json states no positive {' or '.join(keys)}")
    return value


def _stated(fields: Mapping[str, Any], *keys: str) -> int | None:
    """The first of `keys` that is a positive number, at the top or in the text part of a multimodal model."""
    text = fields.get("text_config")
    for part in (fields, text if isinstance(text, dict) else {}):
        for key in keys:
            value = part.get(key)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
    return None
