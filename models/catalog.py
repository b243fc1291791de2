"""The base models of this host: every model directory below a few folders, by its relative path."""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from contract.model import ModelCard
from models.config import read_card
from models.hub import UnknownModelError, hub_card, hub_directory

__all__ = ["Catalog", "UnknownModelError", "hub_card"]

logger = logging.getLogger(__name__)


class Catalog:
    """The model directories below `folders`; of two with one name, the earlier folder's counts.

    A model directory has a config.json and at least one *.safetensors. Its name is its path
    relative to the folder, with slashes. The folders are read once, here: a model that appears
    later is served after a restart.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        """Raises ValueError when one of the folders is not there, or is itself a model."""
        self._models: dict[str, tuple[ModelCard, Path]] = {}
        for folder in folders:
            if not folder.is_dir():
                raise ValueError(f"the models folder {folder} is not a directory")
            if _is_model(folder):
                raise ValueError(f"the models folder {folder} is itself a model; name the folder above it")
            for directory in _model_directories(folder, ()):
                self._add(directory.relative_to(folder).as_posix(), directory)

    def cards(self) -> tuple[ModelCard, ...]:
        """One card a model, by name."""
        return tuple(card for _, (card, _) in sorted(self._models.items()))

    def directory(self, name: str) -> Path:
        """The files of a model: a local directory, else fetched from the hub.

        Raises:
            UnknownModelError: the name is neither local nor to be had from the hub.
        """
        if name in self._models:
            return self._models[name][1]
        return hub_directory(name)

    def _add(self, name: str, directory: Path) -> None:
        try:
            card = read_card(name, directory / "config.json", has_tokenizer=(directory / "tokenizer.json").is_file())
        except ValueError as error:
            logger.warning("the model %s is not served: %s", name, error)
            return
        self._models.setdefault(name, (card, directory))


def _model_directories(folder: Path, above: tuple[Path, ...]) -> Iterator[Path]:
    """Model directories below `folder`, links followed; nothing hidden, and nothing inside a model directory.

    `above` holds the real paths that led here, so that a link to one of them ends the walk.
    """
    real = folder.resolve()
    if real in above:
        return
    for child in sorted(folder.iterdir()):
        if child.name.startswith(".") or not child.is_dir():
            continue
        if _is_model(child):
            yield child
        else:
            yield from _model_directories(child, (*above, real))


def _is_model(directory: Path) -> bool:
    return (directory / "config.json").is_file() and any(directory.glob("*.safetensors"))
