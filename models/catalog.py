"""The base models of this host: every model directory below a few folders, by its relative path."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from contract.model import ModelCard
from models.config import stated_model
from models.folders import has_model_files, is_model, model_directories
from models.hub import UnknownModelError, hub_card, hub_directory
from models.inspection import Describe, inspect

__all__ = ["Catalog", "RefusedModelError", "UnknownModelError", "hub_card"]

# Workers say the reasons with each heartbeat.
MOST_CHARACTERS = 500
MOST_EMPTY = 100
NO_MODEL = "its folder has neither a config.json nor weights"

logger = logging.getLogger(__name__)


class RefusedModelError(ValueError):
    """The base model is here, and cannot be served as it is."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"the base model {name!r} is refused: {reason}")
        self.reason = reason


class Catalog:
    """The model directories below `folders`; of two with one name, the earlier folder's counts.

    A model directory has a config.json and at least one *.safetensors. Its name is its path relative to the folder,
    with slashes. The folders are read once, here: a model that appears later, or is mended, is served after a restart.
    """

    def __init__(self, folders: Sequence[Path], describe: Describe = stated_model) -> None:
        """Raises ValueError when one of the folders is not there, or is itself a model."""
        self._describe = describe
        self._models: dict[str, tuple[ModelCard, Path]] = {}
        self._refused: dict[str, str] = {}
        self._empty: dict[str, str] = {}
        for folder in folders:
            if not folder.is_dir():
                raise ValueError(f"the models folder {folder} is not a directory")
            if is_model(folder):
                raise ValueError(f"the models folder {folder} is itself a model; name the folder above it")
            for directory in model_directories(folder):
                self._add(directory.relative_to(folder).as_posix(), directory)

    def cards(self) -> tuple[ModelCard, ...]:
        """One card a model, by name, without those that are refused."""
        return tuple(card for name, (card, _) in sorted(self._models.items()) if name not in self._refused)

    @property
    def refused(self) -> Mapping[str, str]:
        """Why models of this host are not served, by name."""
        return self._refused

    @property
    def unserved(self) -> dict[str, str]:
        """What is refused, and folders without a model: why none of them is served, by name."""
        return self._empty | self._refused

    def refuse(self, name: str, reason: str) -> None:
        """What loading a model has shown, so that nobody loads it again. Safe to call from any thread."""
        sentence = reason.encode(errors="backslashreplace").decode()[:MOST_CHARACTERS]
        logger.warning("the model %s is not served: %s", name, sentence)
        self._refused = {**self._refused, name: sentence}

    def directory(self, name: str) -> Path:
        """The files of a model: a local directory, else fetched from the hub.

        Raises:
            RefusedModelError: it is here, and cannot be served.
            UnknownModelError: the name is neither local nor to be had from the hub.
        """
        if name in self.unserved:
            raise RefusedModelError(name, self.unserved[name])
        if name in self._models:
            return self._models[name][1]
        directory = hub_directory(name)
        try:
            inspect(name, directory, self._describe)
        except ValueError as error:
            raise RefusedModelError(name, str(error)) from error
        return directory

    def _add(self, name: str, directory: Path) -> None:
        if name in self._models or name in self._refused:
            return
        if not _is_utf8(name):
            logger.warning("the model %r is not served: its name is not UTF-8", name)
            return
        if not has_model_files(directory):
            if len(self._empty) < MOST_EMPTY:
                self._empty[name] = NO_MODEL
            return
        # An earlier folder may have a folder of this name, without a model.
        self._empty.pop(name, None)
        try:
            self._models[name] = (inspect(name, directory, self._describe), directory)
        except ValueError as error:
            self.refuse(name, str(error))


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
