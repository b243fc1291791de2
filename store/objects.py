"""Object storage: a local folder or any S3-compatible store, behind obstore."""

import errno
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

import obstore
from obstore.exceptions import BaseError as ObjectStoreError
from obstore.exceptions import GenericError, PermissionDeniedError, UnauthenticatedError
from obstore.store import HTTPStore, LocalStore, MemoryStore, ObjectStore, from_url

from store.errors import ObjectMissingError, ObjectsAwayError
from store.folder import Folder
from store.private_files import OBJECTS, make_folder

REFUSED = "CELERITY_OBJECTS_URL cannot be opened: "
# What a disk, a network, a bucket or its keys are the reason of. The others would be faults of ours.
AWAY = (GenericError, PermissionDeniedError, UnauthenticatedError)
# In obstore's words, which has one exception for these and for what passes: an answer of 4xx (but for 408 and 429), or
# HTTP where AWS_ALLOW_HTTP is not set.
FOR_GOOD = re.compile("status code: 4(?!08|29)|builder error")
# What a disk is out of, for a while.
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
# By itself obstore tries for three minutes, while a request waits and its client gives up. Whoever has more time tries
# again (see workers/retry.py).
RETRIES = {"max_retries": 3, "retry_timeout": timedelta(seconds=10)}


class Objects:
    """Whole objects by path. A put is visible whole or not at all.

    Each method raises ObjectsAwayError for storage that cannot be reached, is full, is read-only or refuses our keys.
    """

    def __init__(self, store: ObjectStore, *, is_private: bool = False) -> None:
        """Where they lie in a folder and it `is_private`, they are its owner's alone."""
        self._store = store
        root = store.prefix if isinstance(store, LocalStore) else None
        self._folder = Folder(Path(root), is_private=is_private) if root else None

    def check(self) -> None:
        """Raises ValueError for what does not pass by itself: there is no such bucket, its keys are not good, or the
        folder may not be written. ObjectsAwayError for storage that cannot be reached or has no room."""
        try:
            self.reach()
        except ObjectsAwayError as error:
            if _passes(error.__cause__):
                raise
            raise ValueError(str(error) if self._folder else REFUSED + str(error)) from error

    def reach(self, room: int = 0) -> None:
        """Raises ObjectsAwayError, also when a disk has not as much `room`. Leaves nothing: a bucket is listed."""
        if self._folder:
            self._folder.check(room)
        else:
            self.is_empty()

    def is_empty(self) -> bool:
        """Whether nothing is there at all."""
        if self._folder:
            return self._folder.is_empty()
        with _reaching():
            try:
                return not next(iter(obstore.list(self._store, chunk_size=1)), None)
            except FileNotFoundError as error:
                raise ObjectsAwayError(_reason(error)) from error

    def put(self, path: str, data: bytes | Iterable[bytes]) -> None:
        """From chunks, an object may be larger than memory; what raises while they are made leaves no object."""
        self._check_there()
        chunks = data if isinstance(data, bytes) else Chunks(data)
        with _reaching():
            try:
                obstore.put(self._store, path, chunks)
            except FileNotFoundError as error:
                # What makes the chunks may miss a file of its own.
                if isinstance(chunks, Chunks) and chunks.have_failed:
                    raise
                # A folder was deleted, or a bucket has no such upload in parts: its end or its abort came twice.
                raise ObjectsAwayError(_reason(error)) from error
        if self._folder:
            self._folder.close(path)

    def get(self, path: str) -> bytes:
        """The object's bytes. Raises FileNotFoundError when there is none."""
        self._check_there()
        with _reaching():
            return bytes(obstore.get(self._store, path).bytes())

    def get_kept(self, path: str) -> bytes:
        """The bytes of an object that a record refers to. Raises ObjectMissingError when it is lost.

        Storage that holds nothing at all is not what it was written to: a disk is not mounted, say.
        """
        try:
            return self.get(path)
        except FileNotFoundError as error:
            if self.is_empty():
                raise ObjectsAwayError("nothing is there, where there were objects") from error
            raise ObjectMissingError(f"the object {path} is not there") from error

    def size(self, path: str) -> int:
        """In bytes. Raises FileNotFoundError when there is no such object."""
        self._check_there()
        with _reaching():
            return int(obstore.head(self._store, path)["size"])

    def delete(self, path: str) -> None:
        """Deletes an object, or with a slash at the end all that lies below: whole or half-written, with the folders
        that are empty then. What is not there is no error."""
        self._check_there()
        if self._folder and path.endswith("/"):
            self._folder.delete_all(path)
            return
        with _reaching(), suppress(FileNotFoundError):
            if path.endswith("/"):
                for page in obstore.list(self._store, path):
                    obstore.delete(self._store, [found["path"] for found in page])
            else:
                obstore.delete(self._store, path)
        if self._folder:
            self._folder.delete_rest(path)

    def file(self, path: str) -> Path | None:
        """Where the object lies on this host; None when it lies elsewhere."""
        return self._folder.file(path) if self._folder else None

    def presigned(self, path: str, seconds: float) -> str:
        """A URL from which anyone may read the object for so long; for objects that do not lie on this host."""
        with _reaching():
            return str(obstore.sign(self._store, "GET", path, timedelta(seconds=seconds)))

    def free_bytes(self) -> int | None:
        """Room on the disk that holds the objects; None when they lie elsewhere."""
        return self._folder.free_bytes() if self._folder else None

    def _check_there(self) -> None:
        """A folder that is gone is not made anew: its disk may be mounted again."""
        if self._folder:
            self._folder.check_there()


class Chunks:
    """Of an object. They `have_failed` once what makes them has raised."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self.have_failed = False
        self._chunks = chunks

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._chunks
        except Exception:  # whatever the maker raises is only noted here
            self.have_failed = True
            raise


@contextmanager
def _reaching() -> Iterator[None]:
    """Around a call of obstore's. FileNotFoundError stays what it is, and so does what the maker of chunks raises."""
    try:
        yield
    except AWAY as error:
        raise ObjectsAwayError(_reason(error)) from error


def open_objects(url: str, data_dir: Path) -> Objects:
    """The store at `url` (s3://bucket/prefix, file:///path, ...); without one, a folder of `data_dir`.

    Raises ValueError for what is no such URL, a folder that is not there or cannot be made, or a store that not every
    process would share or that signs no URLs.
    """
    if url:
        return Objects(_opened(url))
    folder = (data_dir / OBJECTS).absolute()
    try:
        make_folder(folder)
        return Objects(LocalStore(str(folder)), is_private=True)
    except (ObjectStoreError, OSError) as error:
        raise ValueError(f"the objects' folder {folder} of DATA_DIR cannot be made: {_reason(error)}") from error


def _opened(url: str) -> ObjectStore:
    try:
        store = from_url(url) if url.startswith("file:") else from_url(url, retry_config=RETRIES)
    except (ObjectStoreError, ValueError) as error:
        raise ValueError(REFUSED + _reason(error)) from error
    if isinstance(store, MemoryStore):
        raise ValueError(f"{REFUSED}each process would have objects of its own at {url}")
    if isinstance(store, HTTPStore):
        raise ValueError(f"{REFUSED}{url} is no bucket; s3://bucket/prefix is one, and AWS_ENDPOINT_URL says where")
    return store


def _passes(reason: BaseException | None) -> bool:
    """Whether the error is transient (network, busy bucket, full disk) and not one of configuration."""
    if isinstance(reason, GenericError):
        return not FOR_GOOD.search(str(reason))
    return isinstance(reason, OSError) and reason.errno in NO_ROOM


def _reason(error: Exception) -> str:
    """What follows its first line, or is XML, is for those who write obstore."""
    return str(error).partition("\n")[0].partition(": <?xml")[0]
