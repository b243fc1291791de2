"""Loads what a Hugging Face directory holds: configuration, weights, tokenizer and end tokens."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    GenerationConfig,
)

from domain.model import NO_TOKENIZER, TOKENIZER_FILES
from workers.engine.device.free_memory import free_bytes
from workers.engine.failures import out_of_memory, refusing

# Imported before transformers creates a model: see there.
from workers.engine.loading import default_dtype  # noqa: F401

# Their angles depend on the longest sequence of the batch, so that a result would depend on other requests.
BATCH_DEPENDENT_ROPE = {"dynamic", "longrope"}
MOST_NAMED = 3
NO_TEXT = "its files hold no token that has a text"
LOCAL: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}


def load_config(directory: Path) -> Any:
    """Raises ValueError where transformers knows no such configuration, or no causal language model for it."""
    with refusing("config.json cannot be used", directory):
        config = AutoConfig.from_pretrained(directory, **LOCAL)
    if type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING:
        raise ValueError(f"config.json has the model_type {config.model_type!r}, which is no causal language model")
    return config


def empty_model(directory: Path, config: Any, dtype: torch.dtype) -> Any:
    """The model of that configuration without memory for its weights. Raises ValueError where there is none."""
    with refusing("config.json describes no model that transformers can make", directory), torch.device("meta"):
        return AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation="eager")


def load_model(directory: Path, device: torch.device, dtype: torch.dtype) -> Any:
    """The model in memory, every tensor of it from the directory's files.

    Raises:
        ValueError: the directory is no such model, its numbers could not be reproduced, or transformers would fill or
            leave out a tensor.
        OperationFailedError: the device has no memory for it.
    """
    config = load_config(directory)
    _refuse_batch_dependent_rope(config)
    _check_size(directory, config, device, dtype)
    with refusing("its weights cannot be loaded", directory):
        model, found = AutoModelForCausalLM.from_pretrained(
            directory, config=config, dtype=dtype, attn_implementation="eager", use_safetensors=True,
            output_loading_info=True, ignore_mismatched_sizes=True, **LOCAL,
        )  # fmt: skip
    _refuse_unlike(found)
    return model.to(device).eval().requires_grad_(False)


def load_end_tokens(directory: Path, config: Any, tokenizer: Any | None) -> frozenset[int]:
    """From all places that name one: the token that ends a chat model's turn is often only in its generation config.

    Raises:
        ValueError: the generation config cannot be read, or something else than a token is named.
    """
    parts = (config, config.get_text_config(), tokenizer)
    named = [getattr(part, "eos_token_id", None) for part in parts]
    if (directory / "generation_config.json").exists():
        with refusing("generation_config.json cannot be used", directory):
            named.append(GenerationConfig.from_pretrained(directory, local_files_only=True).eos_token_id)
    tokens = [token for item in named for token in (item if isinstance(item, list) else [item]) if token is not None]
    strange = [token for token in tokens if not isinstance(token, int)]
    if strange:
        raise ValueError(f"eos_token_id is {strange[0]!r}, which is no token id: correct the model's configuration")
    return frozenset(tokens)


def _refuse_batch_dependent_rope(config: Any) -> None:
    parameters = getattr(config, "rope_parameters", None) or {}
    by_layer_type = [part for part in parameters.values() if isinstance(part, dict)]
    for part in by_layer_type or [parameters]:
        if part.get("rope_type") in BATCH_DEPENDENT_ROPE:
            raise ValueError(f"rope type {part['rope_type']} makes a result depend on its neighbours in the batch")


def _check_size(directory: Path, config: Any, device: torch.device, dtype: torch.dtype) -> None:
    """Called before anything is allocated: transformers would create what a file lacks, however large."""
    # In torch's default dtype, so that the engine need not be paused.
    model = empty_model(directory, config, torch.float32)
    sizes = [weight.numel() for weight in model.parameters()]
    weights, stored = sum(sizes), sum(file.stat().st_size for file in directory.rglob("*.safetensors"))
    if weights > stored:
        raise ValueError(f"config.json describes {weights} weights, more than safetensors files of {stored} bytes hold")
    # One tensor at a time is in memory twice, when it is laid out for the kernels.
    size = (weights + max(sizes)) * dtype.itemsize + sum(buffer.nbytes for buffer in model.buffers())
    if size > (free := free_bytes(device)):
        raise out_of_memory(
            f"To load the base model takes {size} bytes in {dtype}, and its worker has {free} free. "
            "Add a worker with more memory, or have this one keep fewer models."
        )


def _refuse_unlike(found: Mapping[str, Any]) -> None:
    """Raises ValueError for tensors that transformers did not find in the files, and has filled with random numbers."""
    if found["mismatched_keys"]:
        unlike = [f"{name} {list(theirs)} for {list(ours)}" for name, theirs, ours in sorted(found["mismatched_keys"])]
        raise ValueError(f"its files hold tensors of other shapes than config.json describes: {_listed(unlike)}")
    if found["missing_keys"]:
        raise ValueError(f"its files lack tensors that config.json describes: {_listed(sorted(found['missing_keys']))}")
    if found["unexpected_keys"]:
        raise ValueError(
            f"its files hold tensors that its model has no place for: {_listed(sorted(found['unexpected_keys']))}"
        )


def _listed(names: Iterable[str]) -> str:
    """The first few of them, and how many there are."""
    found = list(names)
    return f"{', '.join(found[:MOST_NAMED])} ({len(found)} in all)"


def load_tokenizer(directory: Path) -> tuple[Any | None, str]:
    """The tokenizer, or None and the reason: without one a model is served by token ids."""
    if not any((directory / name).is_file() for name in TOKENIZER_FILES):
        return None, NO_TOKENIZER
    try:
        with refusing("the tokenizer cannot be loaded", directory):
            tokenizer = AutoTokenizer.from_pretrained(directory, local_files_only=True, trust_remote_code=False)
            # Transformers creates an empty one where it finds the class, but not the vocabulary.
            has_text = bool(tokenizer.decode(list(range(len(tokenizer))), skip_special_tokens=True))
    except ValueError as error:
        return None, str(error)
    return (tokenizer, "") if has_text else (None, f"the tokenizer cannot be used: {NO_TEXT}")
