"""Where base models lie on a host."""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path

from models import bundled
from models.config import NAME

SERVED = "*.safetensors"
# Of weights in any format: a folder that has some is meant to be a model.
WEIGHTS = (SERVED, "*.safetensors.index.json", "*.bin", "*.gguf", "*.pt", "*.pth", "*.onnx")


def model_folders(models_dir: Path | None) -> list[Path]:
    """The user's models before the bundled one, which an image may have been built without."""
    bundle = [bundled.DIRECTORY] if bundled.DIRECTORY.is_dir() else []
    return ([models_dir] if models_dir else []) + bundle


def model_directories(folder: Path, above: tuple[Path, ...] = ()) -> Iterator[Path]:
    """The models below `folder`, links followed; nothing hidden, and nothing inside a whole model.

    What has a configuration or weights alone is named too, as is a folder in which there is no model: whoever asks for
    it is told so, rather than that the hub has none of the name. `above` holds the real paths that led here, so
    that a link to one of them ends the walk.
    """
    real = folder.resolve()
    for child in _folders_in(folder):
        if child.resolve() in (*above, real):
            continue
        if is_model(child):
            yield child
            continue
        below = list(model_directories(child, (*above, real)))
        if has_model_files(child):
            yield child
            yield from filter(is_model, below)
        else:
            yield from below or [child]


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
    """None of a folder that may not be read: the refusal of its config.json says so."""
    try:
        return [child.name for child in directory.iterdir()]
    except OSError:
        return []


def _folders_in(folder: Path) -> list[Path]:
    try:
        return sorted(child for child in folder.iterdir() if not child.name.startswith(".") and child.is_dir())
    except OSError:
        return []
