"""What lies in DATA_DIR is for its owner alone: what users sent, and under the local stack what the API signs with."""

import logging
import os
import stat
from pathlib import Path

from settings import Settings

log = logging.getLogger(__name__)

FOLDER, FILE, UMASK = 0o700, 0o600, 0o077
OTHERS = stat.S_IRWXG | stat.S_IRWXO
OBJECTS, VALKEY, LOCK, STACK_LOG = "objects", "valkey", "lock", "stack.log"
# All that Celerity puts there; what else is in the folder is its user's.
OURS = (OBJECTS, VALKEY, LOCK, STACK_LOG)


def close_data_dir(data_dir: Path) -> list[Path]:
    """Takes DATA_DIR, and what Celerity keeps in it, from all but the owner; what of these had been open.

    A folder that belongs to somebody else, or that all write to (/tmp), stays as it is: what lies in it is closed.
    """
    data_dir = data_dir.resolve()
    is_everybodys = data_dir.exists() and data_dir.stat().st_mode & stat.S_ISVTX
    folders = [] if is_everybodys else [data_dir]
    return [*filter(close, folders), *filter(_close_tree, (data_dir / name for name in OURS))]


def make_folder(folder: Path) -> None:
    """Makes DATA_DIR or a folder in it, with those above it, unless it is there."""
    if not folder.exists():
        make_folder(folder.parent)
        folder.mkdir(FOLDER, exist_ok=True)


def close_for(settings: Settings) -> None:
    """At the start of a process that keeps objects in DATA_DIR. In a folder of the user's own they have the modes that
    its owner wants."""
    for path in [] if settings.objects_url else close_data_dir(settings.data_dir):
        log.warning("other users of this host could reach %s: closed to all but its owner", path)


def open_private(path: str, flags: int) -> int:
    """An opener, see `open`: a file that it makes is its owner's alone."""
    return os.open(path, flags, FILE)


def close(path: Path) -> bool:
    """Takes a file or a folder from all but its owner; whether it had been open to them. A link leads to what is the
    user's own."""
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode) or not mode & OTHERS:
            return False
        path.chmod(FOLDER if stat.S_ISDIR(mode) else FILE)
    except OSError:  # it is not there, is another's, or lies on a disk that is only read
        return False
    return True


def _close_tree(path: Path) -> bool:
    """A file, or a folder with all below it. What another user has put there is behind a folder that is closed."""
    if not close(path):
        return False
    for folder, folders, files in os.walk(path):
        for name in (*folders, *files):
            close(Path(folder, name))
    return True
