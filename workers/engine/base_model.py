"""A frozen causal language model from a Hugging Face directory, shared by the adapters on it."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from workers.engine.attention import SegmentAttention
from workers.engine.cached_attention import DecodeAttention, Span, SpanAttention
from workers.engine.failures import invalid_input
from workers.engine.forward_pass import ForwardPass
from workers.engine.frozen_linear import FrozenLinear
from workers.engine.kv_cache import KvCache
from workers.engine.llama import Llama
from workers.engine.loading import load_end_tokens, load_model
from workers.engine.tokenizer import load_tokenizer
from workers.engine.transformers_stack import TransformersStack
from workers.engine.windows import refuse_unknown_layers

NO_PLAIN_HEAD = "its logits are not a plain linear head"
NOT_CAUSAL = "its layers do more than plain causal attention between its tokens"


class BaseModel:
    """Loads and checks the model; runs its layers (without the head) under the adapters of a pass.

    Raises:
        ValueError: the directory is no such model, or one whose numbers we could not reproduce.
    """

    def __init__(self, directory: Path, device: torch.device, dtype: torch.dtype) -> None:
        self.device, self.dtype = device, dtype
        model = load_model(directory, device, dtype)
        refuse_unknown_layers(model.config)
        self.head = FrozenLinear(_plain_head(model))
        self.vocab_size = self.head.outputs
        self.tokenizer, self.tokenizer_fault = load_tokenizer(directory)
        self.end_tokens = load_end_tokens(directory, model.config, self.tokenizer)
        tokens_BT = torch.arange(24, device=device).mul_(7).remainder_(self.vocab_size).view(2, 12)
        theirs_BTD = self._check_head(model, tokens_BT)
        self._stack = Llama(model, self.head) if Llama.can_take(model.config) else TransformersStack(model)
        self.groups = self._stack.groups
        self.kv_bytes_per_token = self._check_layers(tokens_BT, theirs_BTD)

    @property
    def is_packed(self) -> bool:
        """Whether our own kernels compute its products."""
        return self.head.packed is not None

    def check_tokens(self, tokens: np.ndarray, of: str) -> None:
        """Raises OperationFailedError for an id outside the vocabulary: on CUDA it would spoil the process's device."""
        outside = (tokens < 0) | (tokens >= self.vocab_size)
        if outside.any():
            index = int(outside.argmax())
            raise invalid_input(
                f"Token {tokens[index]} at index {index} of {of} is outside the vocabulary of {self.vocab_size}."
            )

    def hidden(self, forward_pass: ForwardPass) -> Tensor:
        """Last hidden states [T, D]."""
        return self._stack(forward_pass)

    def logits(self, hidden_ND: Tensor) -> Tensor:
        """Raw logits [N, V] in the model's dtype, outside of autograd."""
        return self.head.product(hidden_ND)

    @torch.no_grad()
    def _check_head(self, model: Any, tokens_BT: Tensor) -> Tensor:
        """Compares our head with the model's; the model's own hidden states [B, T, D]."""
        hidden_BTD: Tensor = model.base_model(input_ids=tokens_BT, use_cache=False).last_hidden_state
        theirs_BTV = model(input_ids=tokens_BT, use_cache=False).logits
        _refuse_unless_close(self.logits(hidden_BTD.flatten(0, 1)), theirs_BTV.flatten(0, 1), NO_PLAIN_HEAD)
        return hidden_BTD

    @torch.no_grad()
    def _check_layers(self, tokens_BT: Tensor, theirs_BTD: Tensor) -> int:
        """Compares our passes, whole and from a cache, with the model's own; bytes per cached token."""
        rows, length = tokens_BT.shape
        positions_BT = torch.arange(length, device=self.device).expand(rows, -1)
        whole = ForwardPass(tokens_BT.flatten(), positions_BT.flatten(), SegmentAttention.whole([length] * rows))
        _refuse_unless_close(self.hidden(whole), theirs_BTD.flatten(0, 1), NOT_CAUSAL)
        cache, hiddens = KvCache(), []
        cache.reserve(rows, length)
        for start, stop in ((0, 5), (5, length - 1), (length - 1, length)):
            tokens_T, positions_T = tokens_BT[:, start:stop].flatten(), positions_BT[:, start:stop].flatten()
            spans = SpanAttention(cache, [Span(row, start, stop) for row in range(rows)], self.device)
            attention = DecodeAttention(cache, list(range(rows)), positions_T) if stop == length else spans
            hidden_TD = self.hidden(ForwardPass(tokens_T, positions_T, attention))
            hiddens.append(hidden_TD.view(rows, stop - start, -1))
        _refuse_unless_close(torch.cat(hiddens, 1), theirs_BTD, "it does not decode from a plain key-value cache")
        return cache.bytes_per_token


def _plain_head(model: Any) -> Tensor:
    head = model.get_output_embeddings()
    if not isinstance(head, nn.Linear) or getattr(head, "bias", None) is not None:
        raise ValueError(NO_PLAIN_HEAD)
    return head.weight


def _refuse_unless_close(ours: Tensor, theirs: Tensor, reason: str) -> None:
    """By the root mean square of the difference: in bf16 single entries end up far off, on both sides."""
    tolerance = 1e-3 if ours.dtype is torch.float32 else 1e-1
    off, scale = (torch.linalg.vector_norm(part.float()) for part in (ours - theirs, theirs))
    if not off <= tolerance * scale:
        raise ValueError(reason)
