"""Object storage: a local folder or any S3-compatible store, behind obstore."""

from pathlib import Path

import obstore
from obstore.exceptions import NotFoundError
from obstore.store import LocalStore, ObjectStore, from_url


class Objects:
    """Whole objects by path. A put is visible whole or not at all."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def put(self, path: str, data: bytes) -> None:
        obstore.put(self._store, path, data)

    def get(self, path: str) -> bytes:
        """The object's bytes. Raises FileNotFoundError when there is none."""
        return bytes(obstore.get(self._store, path).bytes())

    def delete(self, path: str) -> None:
        """Deleting what is not there is no error."""
        try:
            obstore.delete(self._store, path)
        except (NotFoundError, FileNotFoundError):
            return


def open_objects(url: str, data_dir: Path) -> Objects:
    """The store at `url` (s3://bucket/prefix, file:///path, ...); without one, a folder of `data_dir`."""
    if url:
        return Objects(from_url(url))
    return Objects(LocalStore(str((data_dir / "objects").absolute()), mkdir=True))
