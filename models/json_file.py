"""A JSON object in a file of a model's folder."""

import json
from pathlib import Path
from stat import S_ISREG
from typing import Any

# The largest index of a public checkpoint has a tenth of it.
MOST_BYTES = 64 << 20
POINTER = b"version https://git-lfs.github.com/spec/"
POINTER_SENTENCE = "is a Git LFS pointer in place of the file: run `git lfs pull` where the folder comes from"


def read_object(path: Path) -> dict[str, Any]:
    """Raises ValueError, naming the file, when it is not there or holds no JSON object."""
    try:
        found = path.stat()
        if not S_ISREG(found.st_mode) or found.st_size > MOST_BYTES:
            raise ValueError(f"{path.name} is no file of up to {MOST_BYTES} bytes")
        text = path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path.name} cannot be read: {error.strerror}") from error
    refuse_pointer(path.name, text)
    try:
        fields = json.loads(text)
    except RecursionError as error:
        raise ValueError(f"{path.name} cannot be read: it is nested too deeply") from error
    except ValueError as error:
        raise ValueError(f"{path.name} cannot be read as JSON: {error}") from error
    if not isinstance(fields, dict):
        raise ValueError(f"{path.name} is not a JSON object")
    return fields


def refuse_pointer(name: str, beginning: bytes) -> None:
    """Raises ValueError for what Git leaves in a folder where the large files were not fetched."""
    if beginning.startswith(POINTER):
        raise ValueError(f"{name} {POINTER_SENTENCE}")
