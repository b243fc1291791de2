"""One stack per data folder: two servers appending to one log would ruin it."""

import fcntl
import os
from pathlib import Path

from store.private_files import LOCK, make_folder, open_private


class DataFolderLock:
    """Holds `folder`, making it if need be, until `release` and the end of every process that inherited `fd`."""

    def __init__(self, folder: Path, holder: str = "") -> None:
        """`holder` is what a later one is told of this one.

        Raises:
            ValueError: another stack holds the folder, or it cannot be made or written.
        """
        try:
            make_folder(folder)
            self.fd = open_private(str(folder / LOCK), os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise ValueError(f"{folder} cannot be used ({error.strerror}): choose another DATA_DIR") from error
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self.fd)
            raise ValueError(_refusal(folder)) from error
        os.truncate(self.fd, 0)
        os.write(self.fd, holder.encode())

    def release(self) -> None:
        os.close(self.fd)


def check_unlocked(folder: Path) -> None:
    """Raises ValueError when another stack holds `folder`. Makes nothing."""
    if (folder / LOCK).exists():
        DataFolderLock(folder).release()


def _refusal(folder: Path) -> str:
    holder = (folder / LOCK).read_text()
    return f"another stack runs in {folder}{holder and f' ({holder})'}: stop it, or choose another DATA_DIR"
