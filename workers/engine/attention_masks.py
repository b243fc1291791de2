"""Which cached positions a query may see, in full and in sliding-window layers."""

from typing import Any

import torch
from torch import Tensor

SUPPORTED_LAYERS = {"full_attention", "sliding_attention"}


class AttentionMasks:
    """Made from a model's config; called with the positions of a forward pass.

    Raises:
        ValueError: a layer type that the cache cannot serve.
    """

    def __init__(self, config: Any) -> None:
        self._window: int | None = getattr(config, "sliding_window", None)
        self._layer_types = set(getattr(config, "layer_types", None) or ())
        if unknown := self._layer_types - SUPPORTED_LAYERS:
            raise ValueError(f"the model has layers of type {', '.join(sorted(unknown))}, which are not supported")

    def __call__(self, positions_BQ: Tensor, length: int) -> Tensor | dict[str, Tensor]:
        """Boolean [B, 1, Q, length], true where the key at that position is seen; a mapping by
        layer type for a model that mixes them."""
        keys_L = torch.arange(length, device=positions_BQ.device)
        queries_BQ1 = positions_BQ[:, :, None]
        full_BQL = keys_L <= queries_BQ1
        if self._window is None or self._layer_types == {"full_attention"}:
            return full_BQL[:, None]
        sliding_BQL = full_BQL & (keys_L > queries_BQ1 - self._window)
        if not self._layer_types:
            return sliding_BQL[:, None]
        return {"full_attention": full_BQL[:, None], "sliding_attention": sliding_BQL[:, None]}
