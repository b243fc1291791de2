"""A model's configuration, read for the numbers that requests are checked and placed by."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from domain.model import Described, ModelCard
from models.json_file import read_object
from models.sizes import CONTEXT, HEAD_SIZE, HEADS, HIDDEN, INNER, KEY_HEADS, LAYERS, VOCABULARY, refuse_excess, whole

NAME = "config.json"
QUANTIZATION_KEYS = ("quantization_config", "compression_config")


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
            what is adapted, the sizes that an adapter's follows from; one of them is more than is served; or its
            weights are quantized.
    """
    fields, adaptation = described
    refuse_quantized(fields)
    refuse_excess(fields)
    return ModelCard(
        name=name,
        vocab_size=_positive(fields, VOCABULARY),
        context_length=_positive(fields, *CONTEXT),
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


def _dense_width(fields: Mapping[str, Any]) -> int:
    """Inputs and outputs of the q, k, v, o, gate, up and down projections of a dense decoder, taken together."""
    layers, hidden, inner, heads = (_positive(fields, *keys) for keys in (LAYERS, HIDDEN, INNER, HEADS))
    head = _stated(fields, HEAD_SIZE) or hidden // heads
    queries, keys = heads * head, (_stated(fields, KEY_HEADS) or heads) * head
    return layers * (2 * (hidden + queries) + 2 * (hidden + keys) + 3 * (hidden + inner))


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
                return whole(key, value)
    return None


def _parts(fields: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    text = fields.get("text_config")
    return (fields, text) if isinstance(text, dict) else (fields,)
