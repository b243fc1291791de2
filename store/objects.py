"""Object storage: a local folder or any S3-compatible store, behind obstore."""

import shutil
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryFile

import obstore
from obstore.exceptions import BaseError as ObjectStoreError
from obstore.exceptions import NotFoundError
from obstore.store import HTTPStore, LocalStore, MemoryStore, ObjectStore, from_url

REFUSED = "CELERITY_OBJECTS_URL cannot be opened: "


class Objects:
    """Whole objects by path. A put is visible whole or not at all."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._root = Path(store.prefix) if isinstance(store, LocalStore) else None

    def check(self) -> None:
        """Raises ValueError when a store elsewhere cannot be read: there is no such bucket, or its keys are not good.

        A folder was seen as it was opened, and must be one that can be written.
        """
        if self._root:
            _check_writable(self._root)
            return
        try:
            next(iter(obstore.list(self._store, chunk_size=1)), None)
        except (ObjectStoreError, OSError) as error:
            raise ValueError(REFUSED + _reason(error)) from error

    def put(self, path: str, data: bytes | Iterable[bytes]) -> None:
        """From chunks, an object may be larger than memory; what raises while they are made leaves no object."""
        obstore.put(self._store, path, data)

    def get(self, path: str) -> bytes:
        """The object's bytes. Raises FileNotFoundError when there is none."""
        return bytes(obstore.get(self._store, path).bytes())

    def size(self, path: str) -> int:
        """In bytes. Raises FileNotFoundError when there is no such object."""
        return int(obstore.head(self._store, path)["size"])

    def delete(self, path: str) -> None:
        """Deletes an object, or with a slash at the end all that lies below. What is not there is no error."""
        if path.endswith("/"):
            self._delete_folder(path)
            return
        try:
            obstore.delete(self._store, path)
        except (NotFoundError, FileNotFoundError):
            return

    def _delete_folder(self, path: str) -> None:
        if self._root:
            # Half-written files too, which a listing does not show.
            shutil.rmtree(self._root / path, ignore_errors=True)
            return
        for page in obstore.list(self._store, path):
            obstore.delete(self._store, [found["path"] for found in page])

    def file(self, path: str) -> Path | None:
        """Where the object lies on this host; None when it lies elsewhere."""
        return self._root / path if self._root else None

    def presigned(self, path: str, seconds: float) -> str:
        """A URL from which anyone may read the object for so long; for objects that do not lie on this host."""
        return str(obstore.sign(self._store, "GET", path, timedelta(seconds=seconds)))

    def free_bytes(self) -> int | None:
        """Room on the disk that holds the objects; None when they lie elsewhere."""
        return shutil.disk_usage(self._root).free if self._root else None


def _check_writable(folder: Path) -> None:
    try:
        with TemporaryFile(dir=folder):
            return
    except OSError as error:
        raise ValueError(f"the objects' folder {folder} cannot be written: {error.strerror}") from error


def open_objects(url: str, data_dir: Path) -> Objects:
    """The store at `url` (s3://bucket/prefix, file:///path, ...); without one, a folder of `data_dir`.

    Raises ValueError for what is no such URL, a folder that is not there or cannot be made, or a store that not every
    process would share or that signs no URLs.
    """
    if url:
        return Objects(_opened(url))
    folder = (data_dir / "objects").absolute()
    try:
        return Objects(LocalStore(str(folder), mkdir=True))
    except (ObjectStoreError, OSError) as error:
        raise ValueError(f"the objects' folder {folder} of DATA_DIR cannot be made: {_reason(error)}") from error


def _opened(url: str) -> ObjectStore:
    try:
        store = from_url(url)
    except (ObjectStoreError, ValueError) as error:
        raise ValueError(REFUSED + _reason(error)) from error
    if isinstance(store, MemoryStore):
        raise ValueError(f"{REFUSED}each process would have objects of its own at {url}")
    if isinstance(store, HTTPStore):
        raise ValueError(f"{REFUSED}{url} is no bucket; s3://bucket/prefix is one, and AWS_ENDPOINT_URL says where")
    return store


def _reason(error: Exception) -> str:
    """What follows its first line, or is XML, is for those who write obstore."""
    return str(error).partition("\n")[0].partition(": <?xml")[0]
