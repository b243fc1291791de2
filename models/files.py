"""The files of a model's folder, as others' code would open them: plain files of that folder, and none too large."""

import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from huggingface_hub import constants

from models.json_file import MOST_BYTES

# What is read whole: configurations, vocabularies and templates.
READ_WHOLE = ("*.json", "*.jinja", "*.txt", "*.model", "tokenizer*", "vocab*")
# Where transformers looks for more of them.
TEMPLATES = "additional_chat_templates"


def refuse_strange_files(directory: Path) -> None:
    """Raises ValueError for what is no file of the folder: a pipe or a device, which may never end, or a link that
    leads out of it; and for text that no model has so much of. What is hidden, and other folders, nobody reads."""
    for file in _files(directory):
        try:
            found = file.stat()
        except OSError as error:
            raise ValueError(f"{file.name} cannot be read: {error.strerror}") from error
        if S_ISDIR(found.st_mode):
            continue
        if not S_ISREG(found.st_mode):
            raise ValueError(f"{file.name} is no plain file: take it away")
        refuse_outside(directory, file)
        if found.st_size > MOST_BYTES and any(fnmatch(file.name, pattern) for pattern in READ_WHOLE):
            raise ValueError(f"{file.name} has {found.st_size} bytes, and such a file of a model at most {MOST_BYTES}")


def refuse_outside(directory: Path, file: Path) -> None:
    """Raises ValueError when the file is a link out of the folder, save into the hub's cache: so its client lays models
    out."""
    real = os.path.realpath(file)
    if not any(real.startswith(f"{base}{os.sep}") for base in _bases(directory)):
        raise ValueError(f"{file.name} is a link that leads out of its folder: copy the file, or link the whole folder")


def unread(folder: str, names: Sequence[str]) -> list[str]:
    """Of the names in a model's folder those that nobody reads: what is hidden, and other folders."""
    return [name for name in names if name.startswith(".") or (name != TEMPLATES and Path(folder, name).is_dir())]


def is_file(file: Path) -> bool:
    """Also of a name that is too long for one, and where it may not be looked at."""
    try:
        return file.is_file()
    except OSError:
        return False


def _files(directory: Path) -> Iterator[Path]:
    for folder in (directory, directory / TEMPLATES):
        try:
            yield from sorted(file for file in folder.iterdir() if not file.name.startswith("."))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise ValueError(f"its folder cannot be read: {error.strerror}") from error


def _bases(directory: Path) -> list[str]:
    """The real folders that its files may lie in."""
    root = Path(os.path.realpath(directory))
    bases = [str(root), os.path.realpath(constants.HF_HUB_CACHE)]
    if root.parent.name == "snapshots" and root.parents[1].name.startswith("models--"):
        # Of another cache: the repository's files, and those that several share.
        bases += [str(root.parents[1] / "blobs"), str(root.parents[2] / "blobs")]
    return bases
