"""Object storage in a dict, where the product has obstore. Each call takes its time, in which others go on."""

from collections.abc import Iterable, Iterator
from typing import Any

from tests.simulator.connection import Connection


class Bucket:
    """As one process reaches it. The module's functions are those of obstore that store/objects.py calls."""

    def __init__(self, connection: Connection, held: dict[str, bytes]) -> None:
        self.connection, self.held = connection, held


class GetResult:
    """An object that has been read."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def bytes(self) -> bytes:
        return self._data


def put(bucket: Bucket, path: str, data: bytes | Iterable[bytes]) -> None:
    whole = data if isinstance(data, bytes) else b"".join(data)
    bucket.connection.reach(lambda: bucket.held.update({path: whole}))


def get(bucket: Bucket, path: str) -> GetResult:
    """Raises FileNotFoundError."""
    found = bucket.connection.reach(lambda: bucket.held.get(path))
    if found is None:
        raise FileNotFoundError(path)
    return GetResult(found)


def head(bucket: Bucket, path: str) -> dict[str, Any]:
    return {"size": len(get(bucket, path).bytes())}


def delete(bucket: Bucket, paths: str | list[str]) -> None:
    for path in [paths] if isinstance(paths, str) else paths:
        bucket.connection.reach(lambda path=path: bucket.held.pop(path, None))  # type: ignore[misc]


def list_pages(bucket: Bucket, prefix: str = "", **_: object) -> Iterator[list[dict[str, str]]]:
    held = bucket.connection.reach(lambda: [path for path in bucket.held if path.startswith(prefix)])
    if held:
        yield [{"path": path} for path in held]
