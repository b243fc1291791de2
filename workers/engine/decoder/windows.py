"""The attention window of each layer of a model."""

from typing import Any

SUPPORTED_LAYERS = {"full_attention", "sliding_attention"}


def window_of(config: Any, layer: int) -> int | None:
    """The number of tokens that a token of this layer attends to, itself included; None for all before it."""
    types = getattr(config, "layer_types", None)
    window: int | None = getattr(config, "sliding_window", None)
    return window if not types or types[layer] == "sliding_attention" else None


def refuse_unknown_layers(config: Any) -> None:
    """Raises ValueError for a layer type that a cache of keys and values cannot serve."""
    types = set(getattr(config, "layer_types", None) or ())
    if unknown := types - SUPPORTED_LAYERS:
        raise ValueError(f"the model has layers of type {', '.join(sorted(unknown))}, which are not supported")
