"""Operations on objects in a local folder that obstore does not have."""

import shutil
from collections.abc import Iterator
from contextlib import suppress
from itertools import count, takewhile
from pathlib import Path
from tempfile import TemporaryFile

from store import private_files
from store.errors import ObjectsAwayError


class Folder:
    """Each method raises ObjectsAwayError on an I/O or permission error."""

    def __init__(self, root: Path, *, is_private: bool) -> None:
        self._root, self._is_private = root, is_private

    def check(self, room: int) -> None:
        """That files can be written, and how much `room` is left."""
        try:
            # Has no name, so that nothing of it stays, whatever happens.
            with TemporaryFile(dir=self._root):
                pass
        except OSError as error:
            raise ObjectsAwayError(f"the objects' folder {self._root} cannot be written: {error.strerror}") from error
        if (free := self.free_bytes()) < room:
            raise ObjectsAwayError(f"the disk of the objects' folder {self._root} has only {free} bytes free")

    def free_bytes(self) -> int:
        try:
            return shutil.disk_usage(self._root).free
        except OSError as error:
            raise ObjectsAwayError(str(error)) from error

    def file(self, path: str) -> Path:
        """Where the object lies, if there is one."""
        self.check_there()
        return self._root / path

    def check_there(self) -> None:
        if not self._root.is_dir():
            raise ObjectsAwayError(f"the objects' folder {self._root} is not there")

    def is_empty(self) -> bool:
        self.check_there()
        return next(self._root.iterdir(), None) is None

    def close(self, path: str) -> None:
        """Where the folder is private: an object that has just been put, and the folders that were made for it."""
        if self._is_private:
            for each in (self._root / path, *self._above(path)):
                private_files.close(each)

    def delete_all(self, path: str) -> None:
        """All that lies below the path, which ends with a slash, and the folders that are empty then."""
        folder = self._root / path
        try:
            while folder.exists():
                # Another may be deleting it too.
                with suppress(FileNotFoundError):
                    shutil.rmtree(folder)
        except OSError as error:
            raise ObjectsAwayError(str(error)) from error
        self._delete_empty(path)

    def delete_rest(self, path: str) -> None:
        """Of an object that is deleted: what the end of a process has left of it half-written, under the names that
        obstore gives, and the folders that are empty then."""
        try:
            for number in count(1):
                (self._root / f"{path}#{number}").unlink()
        except (FileNotFoundError, NotADirectoryError):
            self._delete_empty(path)
        except OSError as error:
            raise ObjectsAwayError(str(error)) from error

    def _delete_empty(self, path: str) -> None:
        for above in self._above(path):
            # One that is not empty stays. A put that finds its folder gone makes it.
            with suppress(OSError):
                above.rmdir()

    def _above(self, path: str) -> Iterator[Path]:
        """The folders between an object and the root, the nearest first."""
        return takewhile(lambda folder: folder != self._root, (self._root / path).parents)
