"""A disk that a test can fill up: a file system of its own, in memory."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

# More than CELERITY_DISK_FLOOR_BYTES, which is 1 GiB.
ROOMY = "size=4g,nr_inodes=1m"
TRIES = 100


class MountError(OSError):
    pass


class Disk:
    def __init__(self, folder: Path) -> None:
        """Mounted on `folder`, which is made. Raises MountError where nothing can be mounted."""
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._mount("-t", "tmpfs", "-o", f"{ROOMY},mode=700", "celerity-chaos")

    def fill(self) -> None:
        """No more room than what is there takes."""
        self._shrink(lambda found: f"size={(found.f_blocks - found.f_bfree) * found.f_frsize}")

    def fill_inodes(self) -> None:
        """No more files than there are, though there is room for them."""
        self._shrink(lambda found: f"nr_inodes={found.f_files - found.f_ffree}")

    def clear(self) -> None:
        """There is room again. What is there stays."""
        self._mount("-o", f"remount,{ROOMY}")

    def _shrink(self, limit: Callable[[os.statvfs_result], str]) -> None:
        for _ in range(TRIES):
            with suppress(MountError):  # more has been written meanwhile
                return self._mount("-o", f"remount,{limit(os.statvfs(self._folder))}")
        raise TimeoutError(f"{self._folder} grows faster than it can be filled")

    def close(self) -> None:
        subprocess.run(["umount", "--lazy", str(self._folder)], check=True)

    def _mount(self, *arguments: str) -> None:
        done = subprocess.run(["mount", *arguments, str(self._folder)], capture_output=True, text=True)
        if done.returncode:
            raise MountError(done.stderr.strip())


Disks = dict[Path, Disk]


@contextmanager
def mounted(folders: list[Path]) -> Iterator[Disks]:
    """A disk on each of the folders, by folder; none where nothing can be mounted."""
    with ExitStack() as stack:
        try:
            disks = {folder: Disk(folder) for folder in folders}
        except MountError:
            disks = {}
        for disk in disks.values():
            stack.callback(disk.close)
        yield disks
