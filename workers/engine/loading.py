"""What a Hugging Face directory holds, as transformers loads it: weights, tokenizer and end tokens."""

from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, GenerationConfig

# Their angles depend on the longest sequence of the batch, so a neighbour would change a result.
BATCH_DEPENDENT_ROPE = {"dynamic", "longrope"}


def load_model(directory: Path, device: torch.device, dtype: torch.dtype) -> Any:
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


def load_tokenizer(directory: Path) -> Any | None:
    if not any((directory / name).exists() for name in ("tokenizer.json", "tokenizer.model", "tokenizer_config.json")):
        return None
    return AutoTokenizer.from_pretrained(directory, local_files_only=True)


def load_end_tokens(directory: Path, config: Any, tokenizer: Any | None) -> frozenset[int]:
    """All of them: a chat model often ends its turn with a token that only its generation config names."""
    named = [config.eos_token_id, getattr(tokenizer, "eos_token_id", None)]
    if (directory / "generation_config.json").exists():
        named.append(GenerationConfig.from_pretrained(directory).eos_token_id)
    lists = [[item] if isinstance(item, int) else item or [] for item in named]
    return frozenset(token for tokens in lists for token in tokens)
