"""The base models of this host: every model directory below a few folders, by its relative path."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from domain.model import ModelCard
from models.config import stated_model
from models.folders import NO_MODEL, is_model, model_directories
from models.hub import Hub
from models.inspection import Describe, inspect
from models.printable import printable

# Workers say the reasons with each heartbeat.
MOST_CHARACTERS = 500
MOST_EMPTY = 100
UNPRINTABLE = "the name of its folder has characters that no request could name: give it another"

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
    What is wrong with one keeps no other from being served. Other names are those of `hub`.
    """

    def __init__(self, folders: Sequence[Path], describe: Describe = stated_model, hub: Hub | None = None) -> None:
        """Raises ValueError when one of the folders is not there, may not be read, or is itself a model."""
        self._describe, self._hub = describe, hub or Hub(allowed=())
        self._models: dict[str, tuple[ModelCard, Path]] = {}
        self._refused: dict[str, str] = {}
        self._empty: dict[str, str] = {}
        for folder in folders:
            _check_folder(folder)
            for directory, fault in model_directories(folder):
                self._add(directory.relative_to(folder).as_posix(), directory, fault)

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
        sentence = printable(reason)[:MOST_CHARACTERS]
        logger.warning("the model %s is not served: %s", name, sentence)
        self._refused = {**self._refused, name: sentence}

    def directory(self, name: str) -> Path:
        """The files of a model: a local directory, else fetched from the hub.

        Raises:
            RefusedModelError: it is here, and cannot be served.
            UnknownModelError: the name is neither local nor to be had from the hub.
            OperationFailedError: the hub has it, and there is no room for it.
        """
        if name in self.unserved:
            raise RefusedModelError(name, self.unserved[name])
        if name in self._models:
            return self._models[name][1]
        directory = self._hub.directory(name)
        try:
            inspect(name, directory, self._describe)
        except ValueError as error:
            raise RefusedModelError(name, str(error)) from error
        return directory

    def _add(self, name: str, directory: Path, fault: str) -> None:
        if name in self._models or name in self._refused:
            return
        if not name.isprintable():
            self.refuse(printable(name), UNPRINTABLE)
        elif fault == NO_MODEL:
            if len(self._empty) < MOST_EMPTY:
                self._empty[name] = NO_MODEL
        else:
            # An earlier folder may have a folder of this name, without a model.
            self._empty.pop(name, None)
            if fault:
                self.refuse(name, fault)
            else:
                self._look_at(name, directory)

    def _look_at(self, name: str, directory: Path) -> None:
        try:
            self._models[name] = (inspect(name, directory, self._describe), directory)
        except ValueError as error:
            self.refuse(name, str(error))
        except OSError as error:
            self.refuse(name, f"its files cannot be read: {error.strerror or type(error).__name__}")
        except MemoryError:
            self.refuse(name, "there is no memory to look at its files")


def _check_folder(folder: Path) -> None:
    try:
        list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ValueError(f"the models folder {folder} is not a directory") from error
    except OSError as error:
        raise ValueError(f"the models folder {folder} cannot be read: {error.strerror}") from error
    if is_model(folder):
        raise ValueError(f"the models folder {folder} is itself a model; name the folder above it")
