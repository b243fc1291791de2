"""Base models of the Hugging Face hub, for every name that is not a local directory."""

import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatch, fnmatchcase
from pathlib import Path
from typing import NamedTuple

import httpx2
from huggingface_hub import HfApi, ModelInfo, constants, hf_hub_download, snapshot_download, try_to_load_from_cache
from huggingface_hub.errors import EntryNotFoundError, HFValidationError
from huggingface_hub.hf_api import RepoSibling
from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]  # public, though not listed

from domain.model import NO_TOKENIZER, TOKENIZER_FILES, Described, ModelCard
from domain.operation import ErrorCode, OperationFailedError
from models.config import NAME, LeftOutError, read_card
from models.folders import SERVED
from models.json_file import MOST_BYTES, read_object

# A user waits for this inside the request that creates a session.
TIMEOUT_SECONDS = 5.0
FILES = [SERVED, "*.json", "tokenizer*", "*.model", "*.txt", "*.jinja"]

# What the hub's client raises when it is offline, refused, or asked for what is not there.
UNAVAILABLE = (OSError, EntryNotFoundError, httpx2.HTTPError)
NOT_ALLOWED = "may not be fetched from the hub: CELERITY_HUB_MODELS names those that may"


class UnknownModelError(ValueError):
    """No base model of this name is served here or on the hub."""


class Memory(NamedTuple):
    """A worker's, for a model that is fetched: `free_memory` gives the bytes that are free when it is asked."""

    free_memory: Callable[[], int]
    bytes_per_weight: int


class Hub:
    """A model that lies in the local cache is there for everybody. One that does not is fetched where its id fits one
    of the patterns `allowed`, and where it leaves `disk_floor` bytes of the disk, and fits into the `memory`."""

    def __init__(self, allowed: Sequence[str], disk_floor: int = 0, memory: Memory | None = None) -> None:
        self._allowed, self._disk_floor, self._memory = allowed, disk_floor, memory

    def card(self, name: str) -> ModelCard:
        """The card of a model, from the local cache or else from the hub itself.

        Raises:
            UnknownModelError: the name is not a hub id, it may not be fetched, the hub cannot be reached, or it has no
                such model in safetensors.
        """
        _check_id(name)
        try:
            config, has_tokenizer = _cached(name) or self._fetched(name)
            return read_card(name, Described(read_object(config)), "" if has_tokenizer else NO_TOKENIZER)
        except UNAVAILABLE as error:
            raise _unknown(name) from error
        except LeftOutError as error:
            advice = "it is known of models in CELERITY_MODELS_DIR alone; put it there"
            raise UnknownModelError(
                f"the base model {name!r} cannot be served from the hub: {error}; {advice}"
            ) from error
        except UnknownModelError:
            raise
        except ValueError as error:
            raise UnknownModelError(f"the base model {name!r} cannot be served: {error}") from error

    def directory(self, name: str) -> Path:
        """The weights, configuration and tokenizer of a model, downloaded unless cached.

        Raises:
            UnknownModelError: as `card`.
            OperationFailedError: there is no room for it.
        """
        _check_id(name)
        try:
            is_there = self._check_room(name) if self._may_fetch(name) else False
            return Path(snapshot_download(name, allow_patterns=FILES, local_files_only=not is_there))
        except UNAVAILABLE as error:
            raise _unknown(name, "" if self._may_fetch(name) else NOT_ALLOWED) from error

    def _may_fetch(self, name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in self._allowed)

    def _fetched(self, name: str) -> tuple[Path, bool]:
        """One question to the hub before the download, since the download alone retries for half a minute."""
        if not self._may_fetch(name):
            raise _unknown(name, NOT_ALLOWED)
        found = _files(_asked(name))
        if not any(fnmatch(file, SERVED) for file in found):
            raise ValueError("the hub has no safetensors of it")
        if found.get(NAME, 0) > MOST_BYTES:
            raise ValueError(f"{NAME} has {found[NAME]} bytes, and such a file of a model at most {MOST_BYTES}")
        config = hf_hub_download(name, NAME, etag_timeout=TIMEOUT_SECONDS)
        return Path(config), not found.keys().isdisjoint(TOKENIZER_FILES)

    def _check_room(self, name: str) -> bool:
        """Whether the hub answers. Raises OperationFailedError when what is still to be fetched does not fit."""
        try:
            info = _asked(name)
        except UNAVAILABLE:
            return False
        found = _files(info)
        missing = sum(size for file, size in found.items() if not isinstance(try_to_load_from_cache(name, file), str))
        if not missing:
            return True
        free = max(0, _free_disk() - self._disk_floor)
        if missing > free:
            raise _no_room(name, f"{missing} bytes of the disk", f"{free} free above CELERITY_DISK_FLOOR_BYTES")
        if self._memory:
            needed, left = _weight_bytes(info, found, self._memory.bytes_per_weight), self._memory.free_memory()
            if needed > left:
                raise _no_room(name, f"{needed} bytes of memory", f"{left} free")
        return True


def _asked(name: str) -> ModelInfo:
    return HfApi().model_info(name, timeout=TIMEOUT_SECONDS, files_metadata=True)


def _files(info: ModelInfo) -> dict[str, int]:
    """The sizes of what is fetched, by name."""
    siblings: Iterable[RepoSibling] = info.siblings or ()
    return {
        file.rfilename: file.size or 0
        for file in siblings
        if any(fnmatch(file.rfilename, pattern) for pattern in FILES)
    }


def _weight_bytes(info: ModelInfo, found: dict[str, int], bytes_per_weight: int) -> int:
    """In memory, where the hub counts the weights; else what their files have."""
    if info.safetensors:
        return info.safetensors.total * bytes_per_weight
    return sum(size for file, size in found.items() if fnmatch(file, SERVED))


def _free_disk() -> int:
    folder = Path(os.path.realpath(constants.HF_HUB_CACHE))
    return shutil.disk_usage(next(each for each in (folder, *folder.parents) if each.exists())).free


def _check_id(name: str) -> None:
    """A name becomes a path and a URL, so it must look like a hub id before it is either."""
    try:
        validate_repo_id(name)
    except HFValidationError as error:
        raise UnknownModelError(f"{name[:100]!r} is neither a model of this server nor a hub id") from error


def _cached(name: str) -> tuple[Path, bool] | None:
    config = try_to_load_from_cache(name, NAME)
    tokenizers = [try_to_load_from_cache(name, file) for file in TOKENIZER_FILES]
    return (Path(config), any(isinstance(file, str) for file in tokenizers)) if isinstance(config, str) else None


def _unknown(name: str, reason: str = "") -> UnknownModelError:
    here = "is not served here (workers read folders as they start)"
    return UnknownModelError(f"the base model {name!r} {here} and {reason or 'cannot be had from the hub'}")


def _no_room(name: str, needed: str, there: str) -> OperationFailedError:
    message = f"The base model {name!r} of the hub takes {needed}, and its worker has {there}."
    return OperationFailedError(ErrorCode.RESOURCE_EXHAUSTED, message)
