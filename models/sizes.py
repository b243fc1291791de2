"""What sizes a model's configuration may state: the rest is a mistake, or made to exhaust whoever loads it."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

# Token ids and positions are 32-bit integers, and no size of a model is larger.
MOST = 2**31 - 1
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
HIDDEN = ("hidden_size", "n_embd", "d_model")
INNER = ("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size")
HEADS = ("num_attention_heads", "n_head", "n_heads")
KEY_HEADS, HEAD_SIZE, VOCABULARY = "num_key_value_heads", "head_dim", "vocab_size"
# What the model families call their context length.
CONTEXT = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")

# From four to sixteen times what the largest public models have: 126 layers and 53,248 inner neurons (Llama 3.1 405B),
# 1,024 experts, a width of 20,480, 128 heads of 576, 262,144 tokens (Gemma 3), positions up to 10,485,760 (Llama 4).
MOST_LAYERS = 1024
# Each expert of each layer may be a module of its own. Kimi K2 has 61 times 384.
MOST_EXPERTS = 65_536
LIMITS = {
    **dict.fromkeys(HIDDEN, 131_072),
    **dict.fromkeys(INNER, 1_048_576),
    **dict.fromkeys((*HEADS, KEY_HEADS), 4_096),
    HEAD_SIZE: 8_192,
    VOCABULARY: 4_194_304,
    # Each gets a name.
    "num_labels": 65_536,
    **dict.fromkeys(CONTEXT, 134_217_728),
}
# Transformers makes lists of them before it looks at a tensor.
COUNTED = re.compile(r".*(layers?|blocks|depth)|attention_types|first_k_dense_replace")
EXPERTS = re.compile(r".*experts")


def refuse_excess(fields: Mapping[str, Any]) -> None:
    """Raises ValueError for a size of the configuration, at whatever depth, that is more than is served. What else
    there is to say of a number, the model's class says."""
    layers, experts = 1.0, 1.0
    for key, value in _numbers(fields):
        if (most := _most(key)) is not None and not value <= most:
            raise _excess(key, value, most)
        if COUNTED.fullmatch(key):
            layers = max(layers, value)
        elif EXPERTS.fullmatch(key):
            experts = max(experts, value)
    if layers * experts > MOST_EXPERTS:
        raise ValueError(f"config.json gives {layers} layers of {experts} experts, which are more than {MOST_EXPERTS}")


def whole(key: str, value: float) -> int:
    """Raises ValueError for a number that is larger than any size, or has a fraction."""
    if not isinstance(value, int) or value > MOST:
        raise _excess(key, value, MOST)
    return value


def _excess(key: str, value: float, most: int) -> ValueError:
    return ValueError(f"config.json gives {key} as {repr(value)[:30]}, which is no whole number up to {most}")


def _most(key: str) -> int | None:
    if COUNTED.fullmatch(key):
        return MOST_LAYERS
    return MOST_EXPERTS if EXPERTS.fullmatch(key) else LIMITS.get(key)


def _numbers(fields: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Each with the key that it, or the list that it is in, stands under."""
    parts = [*fields.items()]
    while parts:
        key, value = parts.pop()
        if isinstance(value, dict):
            parts += value.items()
        elif isinstance(value, list):
            parts += ((key, each) for each in value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield key, value
