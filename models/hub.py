"""Base models of the Hugging Face hub, for every name that is not a local directory."""

from pathlib import Path

import httpx2
from huggingface_hub import HfApi, hf_hub_download, snapshot_download, try_to_load_from_cache
from huggingface_hub.errors import EntryNotFoundError, HFValidationError
from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]  # public, though not listed

from contract.model import NO_TOKENIZER, TOKENIZER_FILES, Described, ModelCard
from models.config import LeftOutError, read_card
from models.json_file import read_object

# A user waits for this inside the request that creates a session.
TIMEOUT_SECONDS = 5.0
FILES = ["*.safetensors", "*.json", "tokenizer*", "*.model", "*.txt", "*.jinja"]

# What the hub's client raises when it is offline, refused, or asked for what is not there.
UNAVAILABLE = (OSError, EntryNotFoundError, httpx2.HTTPError)


class UnknownModelError(ValueError):
    """No base model of this name is served here or on the hub."""


def hub_card(name: str) -> ModelCard:
    """The card of a model of the hub, from the local cache of it or else from the hub itself.

    Raises:
        UnknownModelError: the name is not a hub id, the hub cannot be reached, or it has no such
            model in safetensors.
    """
    _check_id(name)
    try:
        config, has_tokenizer = _cached(name) or _fetched(name)
        return read_card(name, Described(read_object(config)), "" if has_tokenizer else NO_TOKENIZER)
    except UNAVAILABLE as error:
        raise _unknown(name) from error
    except LeftOutError as error:
        advice = "it is known of models in CELERITY_MODELS_DIR alone; put it there"
        raise UnknownModelError(f"the base model {name!r} cannot be served from the hub: {error}; {advice}") from error
    except ValueError as error:
        raise UnknownModelError(f"the base model {name!r} cannot be served: {error}") from error


def hub_directory(name: str) -> Path:
    """The weights, configuration and tokenizer of a model of the hub, downloaded unless cached.

    Raises:
        UnknownModelError: as `hub_card`.
    """
    _check_id(name)
    try:
        return Path(snapshot_download(name, allow_patterns=FILES, etag_timeout=TIMEOUT_SECONDS))
    except UNAVAILABLE as error:
        raise _unknown(name) from error


def _check_id(name: str) -> None:
    """A name becomes a path and a URL, so it must look like a hub id before it is either."""
    try:
        validate_repo_id(name)
    except HFValidationError as error:
        raise UnknownModelError(f"{name[:100]!r} is neither a model of this server nor a hub id") from error


def _cached(name: str) -> tuple[Path, bool] | None:
    config = try_to_load_from_cache(name, "config.json")
    tokenizers = [try_to_load_from_cache(name, file) for file in TOKENIZER_FILES]
    return (Path(config), any(isinstance(file, str) for file in tokenizers)) if isinstance(config, str) else None


def _fetched(name: str) -> tuple[Path, bool]:
    """One question to the hub before the download, since the download alone retries for half a minute."""
    files = {file.rfilename for file in HfApi().model_info(name, timeout=TIMEOUT_SECONDS).siblings or ()}
    if not any(file.endswith(".safetensors") for file in files):
        raise ValueError("the hub has no safetensors of it")
    config = hf_hub_download(name, "config.json", etag_timeout=TIMEOUT_SECONDS)
    return Path(config), not files.isdisjoint(TOKENIZER_FILES)


def _unknown(name: str) -> UnknownModelError:
    here = "is not served here (workers read folders as they start)"
    return UnknownModelError(f"the base model {name!r} {here} and cannot be had from the hub")
