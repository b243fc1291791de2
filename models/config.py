"""A model's configuration, read for the numbers that requests are checked and placed by."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from contract.model import Described, ModelCard
from models.json_file import read_object

NAME = "config.json"
# What the model families call their context length.
CONTEXT_LENGTH_KEYS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
# Their layers, hidden size, inner size and attention heads.
SIZE_KEYS = (
    ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    ("hidden_size", "n_embd", "d_model"),
    ("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"),
    ("num_attention_heads", "n_head", "n_heads"),
)
COUNTED = re.compile(r".*(layers?|blocks|experts|depth)")
QUANTIZATION_KEYS = ("quantization_config", "compression_config")
# Token ids and positions are 32-bit integers, and no size of a model is larger.
MOST = 2**31 - 1


class LeftOutError(ValueError):
    """A configuration leaves out what its model's class may have a default for."""


def stated_config(directory: Path) -> Mapping[str, Any]:
    """What config.json itself states: without the defaults of the model's class, which transformers knows."""
    return read_object(directory / NAME)


def stated_model(directory: Path) -> Described:
    """Of a model whose class is not known here."""
    return Described(stated_config(directory))


def read_card(name: str, described: Described, tokenizer_fault: str = "") -> ModelCard:
    """The card of the model.

    Raises:
        ValueError: its configuration does not state the vocabulary size, the context length or, where it is not known
            what is adapted, the sizes that an adapter's follows from; or its weights are quantized.
    """
    fields, adaptation = described
    refuse_quantized(fields)
    return ModelCard(
        name=name,
        vocab_size=_positive(fields, "vocab_size"),
        context_length=_positive(fields, *CONTEXT_LENGTH_KEYS),
        tokenizer_fault=tokenizer_fault,
        adapter_width=adaptation.width if adaptation else _dense_width(fields),
        adapted=adaptation.modules if adaptation else (),
        left_out=adaptation.left_out if adaptation else (),
    )


def refuse_quantized(fields: Mapping[str, Any]) -> None:
    """Raises ValueError when the weights are in a quantizer's format: adapters are trained on plain ones."""
    for part in _parts(fields):
        for key in QUANTIZATION_KEYS:
            if part.get(key):
                method = part[key].get("quant_method") if isinstance(part[key], dict) else None
                raise ValueError(
                    f"config.json has {key} ({method or 'without a quant_method'}): the weights are quantized; serve "
                    "the model that they were made from"
                )


def counts(fields: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Every number of layers, blocks or experts that a configuration states, at whatever depth: transformers makes
    lists of them before it looks at a tensor."""
    parts = [fields]
    while parts:
        for key, value in parts.pop().items():
            if isinstance(value, dict):
                parts.append(value)
            elif isinstance(value, int) and COUNTED.fullmatch(key):
                yield key, value


def _dense_width(fields: Mapping[str, Any]) -> int:
    """Inputs and outputs of the q, k, v, o, gate, up and down projections of a dense decoder, taken together."""
    layers, hidden, inner, heads = (_positive(fields, *keys) for keys in SIZE_KEYS)
    head = _stated(fields, "head_dim") or hidden // heads
    queries, keys = heads * head, (_stated(fields, "num_key_value_heads") or heads) * head
    width = layers * (2 * (hidden + queries) + 2 * (hidden + keys) + 3 * (hidden + inner))
    return _bounded("the size of an adapter", width, 2**63 - 1)


def _positive(fields: Mapping[str, Any], *keys: str) -> int:
    value = _stated(fields, *keys)
    if value is None:
        raise LeftOutError(f"config.json states no positive {' or '.join(keys)}")
    return value


def _stated(fields: Mapping[str, Any], *keys: str) -> int | None:
    """The first of `keys` that is a positive number, at the top or in the text part of a multimodal model."""
    for part in _parts(fields):
        for key in keys:
            value = part.get(key)
            if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
                return _bounded(key, value, MOST)
    return None


def _bounded(key: str, value: float, most: int) -> int:
    if not isinstance(value, int) or value > most:
        raise ValueError(f"config.json gives {key} as {repr(value)[:30]}, which is no whole number up to {most}")
    return value


def _parts(fields: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    text = fields.get("text_config")
    return (fields, text) if isinstance(text, dict) else (fields,)
