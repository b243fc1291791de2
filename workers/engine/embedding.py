"""A token's first vector."""

from typing import Any

from torch import Tensor
from torch.nn.functional import embedding

from workers.engine.head import Head


class Embedding:
    """Of a Hugging Face model. Where its head is the same matrix, and packed, it is read from there."""

    def __init__(self, model: Any, head: Head) -> None:
        weight_VD = model.base_model.embed_tokens.weight
        is_tied = weight_VD.data_ptr() == model.get_output_embeddings().weight.data_ptr()
        self._head = head.packed if is_tied else None
        # A copy, like all that is kept: the original may be a view of the whole file in memory.
        self._weight_VD = None if self._head else weight_VD.detach().clone()

    def __call__(self, tokens_T: Tensor) -> Tensor:
        """[T] -> [T, D]"""
        if self._head:
            return self._head.rows(tokens_T)
        assert self._weight_VD is not None
        return embedding(tokens_T, self._weight_VD)
