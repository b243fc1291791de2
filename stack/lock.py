"""One stack per data folder: two servers appending to one log would ruin it."""

import fcntl
import os
from pathlib import Path


class DataFolderLock:
    """Holds `folder`, making it if need be, until `release` and the end of every process that inherited `fd`."""

    def __init__(self, folder: Path) -> None:
        """Raises ValueError when another stack holds the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        self.fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self.fd)
            raise ValueError(f"another stack runs in {folder}: stop it, or choose another DATA_DIR") from error

    def release(self) -> None:
        os.close(self.fd)
