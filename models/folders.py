"""Where base models lie on a host."""

import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from models import bundled
from models.config import NAME

SERVED = "*.safetensors"
# Of weights in any format: a folder that has some is meant to be a model.
WEIGHTS = (SERVED, "*.safetensors.index.json", "*.bin", "*.gguf", "*.pt", "*.pth", "*.onnx")
# Folders of models have a level or two; links in circles make any number of paths of a few folders.
MOST_DEPTH, MOST_FOLDERS = 8, 1000

NO_MODEL = "its folder has neither a config.json nor weights"
TOO_DEEP = f"its folder lies more than {MOST_DEPTH} folders deep, where no model is looked for"
TOO_MANY = f"more than {MOST_FOLDERS} folders lie in it: put models into a folder of their own"


class Folder(NamedTuple):
    """A folder that is meant to be a model, or `fault`: why none is looked for in it, or below it."""

    directory: Path
    fault: str = ""


def model_folders(models_dir: Path | None) -> list[Path]:
    """The user's models before the bundled one, which an image may have been built without."""
    bundle = [bundled.DIRECTORY] if bundled.DIRECTORY.is_dir() else []
    return ([models_dir] if models_dir else []) + bundle


def model_directories(folder: Path, above: tuple[str, ...] = ()) -> Iterator[Folder]:
    """The models below `folder`, links followed; nothing hidden, and nothing inside a whole model.

    What has a configuration or weights alone is named too, as is a folder in which there is no model: whoever asks for
    it is told so, rather than that the hub has none of the name. `above` holds the real paths that led here, so
    that a link to one of them ends the walk.
    """
    led = (*above, os.path.realpath(folder))
    for child in _folders_in(folder):
        if os.path.realpath(child) in led:
            continue
        if is_model(child):
            yield Folder(child)
        elif fault := _unreadable(child):
            yield Folder(child, fault)
        elif len(led) == MOST_DEPTH:
            yield Folder(child, "" if has_model_files(child) else TOO_DEEP)
        else:
            yield from _in_no_model(child, led)


def _in_no_model(child: Path, led: tuple[str, ...]) -> Iterator[Folder]:
    """A folder that is no whole model, and what is below it."""
    below = list(islice(model_directories(child, led), MOST_FOLDERS + 1))
    if len(below) > MOST_FOLDERS:
        yield Folder(child, TOO_MANY)
    elif any(found.fault == TOO_MANY for found in below):
        # Said once, of the highest.
        yield Folder(child, TOO_MANY)
        yield from (found for found in below if not found.fault)
    elif has_model_files(child):
        yield Folder(child)
        yield from (found for found in below if is_model(found.directory))
    else:
        yield from below or [Folder(child, NO_MODEL)]


def is_model(directory: Path) -> bool:
    names = _names_in(directory)
    return NAME in names and _any_fits(names, SERVED)


def has_model_files(directory: Path) -> bool:
    """Whether it is meant to be a model: it has a configuration, or weights in any format."""
    names = _names_in(directory)
    return NAME in names or _any_fits(names, *WEIGHTS)


def _any_fits(names: Sequence[str], *patterns: str) -> bool:
    return any(fnmatch(name, pattern) for name in names for pattern in patterns)


def _names_in(directory: Path) -> list[str]:
    """None of a folder that may not be read."""
    try:
        return [child.name for child in directory.iterdir()]
    except OSError:
        return []


def _unreadable(directory: Path) -> str:
    """Why not; empty where it can be read."""
    try:
        list(directory.iterdir())
    except OSError as error:
        return f"its folder cannot be read: {error.strerror}"
    return ""


def _folders_in(folder: Path) -> list[Path]:
    names = sorted(name for name in _names_in(folder) if not name.startswith("."))
    return [folder / name for name in names if _is_folder(folder / name)]


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False
