"""A frozen causal language model from a Hugging Face directory, shared by the adapters on it."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, GenerationConfig

from workers.engine.attention_masks import AttentionMasks
from workers.engine.failures import invalid_input
from workers.engine.frozen_linear import FrozenLinear
from workers.engine.kv_cache import KvCache
from workers.engine.lora import Route, Routing, attach

# Their angles depend on the longest sequence of the batch, so a neighbour would change a result.
BATCH_DEPENDENT_ROPE = {"dynamic", "longrope"}

NO_PLAIN_HEAD = "its logits are not a plain linear head"


class BaseModel:
    """Loads and checks the model; runs its layers (without the head) under the adapters of a batch.

    Raises:
        ValueError: the directory is no such model, or one whose numbers we could not reproduce.
    """

    def __init__(self, directory: Path, device: torch.device, dtype: torch.dtype) -> None:
        self.device = device
        model = _load(directory, device, dtype)
        self._layers: nn.Module = model.base_model
        self._routing = Routing()
        self._masks = AttentionMasks(model.config)
        self.shapes = attach(model, self._routing)
        self.head = FrozenLinear(_plain_head(model))
        self.vocab_size = self.head.outputs
        self.tokenizer = _tokenizer(directory)
        self.end_tokens = _end_tokens(directory, model.config, self.tokenizer)
        self.kv_bytes_per_token = self._check(model)

    def check_tokens(self, tokens: np.ndarray, of: str) -> None:
        """Raises OperationFailedError for an id outside the vocabulary: on CUDA it would spoil the process's device."""
        outside = (tokens < 0) | (tokens >= self.vocab_size)
        if outside.any():
            index = int(outside.argmax())
            raise invalid_input(
                f"Token {tokens[index]} at index {index} of {of} is outside the vocabulary of {self.vocab_size}."
            )

    def hidden(self, tokens_BT: Tensor, routes: list[Route]) -> Tensor:
        """Last hidden states [B, T, D] of right-padded whole sequences: causality hides the padding."""
        with self._routing.use(routes):
            hidden_BTD: Tensor = self._layers(input_ids=tokens_BT, use_cache=False).last_hidden_state
        return hidden_BTD

    def extend(
        self, tokens_BQ: Tensor, positions_BQ: Tensor, cache: KvCache, first_row: int, length: int, routes: list[Route]
    ) -> Tensor:
        """Hidden states [B, Q, D] of tokens that go on from what rows first_row.. of the cache hold.

        `length` is one more than the largest position.
        """
        cache.place(first_row, positions_BQ, length)
        with self._routing.use(routes):
            hidden_BQD: Tensor = self._layers(
                input_ids=tokens_BQ,
                attention_mask=self._masks(positions_BQ, length),
                position_ids=positions_BQ,
                cache=cache,
                use_cache=True,
            ).last_hidden_state
        return hidden_BQD

    def logits(self, hidden_BD: Tensor) -> Tensor:
        """Raw logits [..., V] in the model's dtype."""
        logits_BV: Tensor = self.head(hidden_BD)
        return logits_BV

    @torch.no_grad()
    def _check(self, model: Any) -> int:
        """Compares our head and our cache with the model's own forward pass; bytes per cached token."""
        tokens_BT = (torch.arange(24, device=self.device) * 7 % self.vocab_size).view(2, 12)
        theirs_BTV = model(input_ids=tokens_BT, use_cache=False).logits
        hidden_BTD = self.hidden(tokens_BT, [])
        _refuse_unless_close(self.logits(hidden_BTD), theirs_BTV, NO_PLAIN_HEAD)
        cache, positions_BT = KvCache(), torch.arange(12, device=self.device).expand(2, -1)
        parts = [slice(0, 5), slice(5, 11), slice(11, 12)]
        ours = [self.extend(tokens_BT[:, p], positions_BT[:, p], cache, 0, p.stop, []) for p in parts]
        _refuse_unless_close(torch.cat(ours, dim=1), hidden_BTD, "it does not decode from a plain key-value cache")
        return cache.bytes_per_token


def _load(directory: Path, device: torch.device, dtype: torch.dtype) -> Any:
    try:
        _refuse_batch_dependent_rope(AutoConfig.from_pretrained(directory, local_files_only=True))
        model = AutoModelForCausalLM.from_pretrained(
            directory, dtype=dtype, attn_implementation="sdpa", use_safetensors=True, local_files_only=True
        )
    except OSError as error:
        raise ValueError("its directory holds no complete model in safetensors") from error
    return model.to(device).eval().requires_grad_(False)


def _refuse_batch_dependent_rope(config: Any) -> None:
    parameters = getattr(config, "rope_parameters", None) or {}
    by_layer_type = [part for part in parameters.values() if isinstance(part, dict)]
    for part in by_layer_type or [parameters]:
        if part.get("rope_type") in BATCH_DEPENDENT_ROPE:
            raise ValueError(f"rope type {part['rope_type']} makes a result depend on its neighbours in the batch")


def _plain_head(model: Any) -> Tensor:
    head = model.get_output_embeddings()
    if not isinstance(head, nn.Linear) or getattr(head, "bias", None) is not None:
        raise ValueError(NO_PLAIN_HEAD)
    return head.weight


def _tokenizer(directory: Path) -> Any | None:
    if not any((directory / name).exists() for name in ("tokenizer.json", "tokenizer.model", "tokenizer_config.json")):
        return None
    return AutoTokenizer.from_pretrained(directory, local_files_only=True)


def _end_tokens(directory: Path, config: Any, tokenizer: Any | None) -> frozenset[int]:
    """All of them: a chat model often ends its turn with a token that only its generation config names."""
    named = [config.eos_token_id, getattr(tokenizer, "eos_token_id", None)]
    if (directory / "generation_config.json").exists():
        named.append(GenerationConfig.from_pretrained(directory).eos_token_id)
    lists = [[item] if isinstance(item, int) else item or [] for item in named]
    return frozenset(token for tokens in lists for token in tokens)


def _refuse_unless_close(ours: Tensor, theirs: Tensor, reason: str) -> None:
    # In bf16 the same sums in another order differ by several units in the last place.
    tolerance = 1e-3 if ours.dtype is torch.float32 else 5e-2
    scale = theirs.float().abs().max().clamp(min=1e-3)
    if not (ours.float() - theirs.float()).abs().max() <= tolerance * scale:
        raise ValueError(reason)
