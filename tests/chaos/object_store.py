"""Where objects are: on a disk, or in a bucket behind a proxy that is slow, breaks off, or says that it is too busy."""

import logging
import os
import random
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest.mock import patch

import obstore
from obstore.store import from_url

from settings import Settings
from store.private_files import OBJECTS
from tests.bucket import serving_bucket
from tests.tcp_proxy import CHUNK_BYTES, TcpProxy, close

SLOW_DOWN = b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
REQUEST_SECONDS = 1.0


class BucketProxy(TcpProxy):
    """`delay` is in seconds for each piece of data; of the pieces, the share `broken_off` is carried by half, which
    ends its connection; while it `is_busy`, every request is answered so."""

    delay = 0.0
    broken_off = 0.0
    is_busy = False

    def carry(self, data: bytes, sink: socket.socket) -> None:
        time.sleep(self.delay)
        if random.random() < self.broken_off:
            sink.sendall(data[: len(data) // 2])
            raise ConnectionResetError
        super().carry(data, sink)

    def connect(self, near: socket.socket) -> None:
        if not self.is_busy:
            super().connect(near)
            return
        near.settimeout(REQUEST_SECONDS)
        with suppress(OSError):
            near.recv(CHUNK_BYTES)
            near.sendall(SLOW_DOWN)
        close(near)


@contextmanager
def bucket_behind_proxy() -> Iterator[tuple[dict[str, str], BucketProxy]]:
    """With the environment that leads to it, which this process has meanwhile too, but for CELERITY_OBJECTS_URL."""
    # It tells of every request, and what is broken off has tracebacks there.
    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    with serving_bucket() as bucket, BucketProxy(bucket.endpoint) as proxy:
        environment = {**bucket.environment, "AWS_ENDPOINT_URL": f"http://{proxy.address}"}
        with patch.dict(os.environ, environment):
            yield {**environment, "CELERITY_OBJECTS_URL": bucket.url}, proxy


def object_paths(settings: Settings) -> list[Path]:
    """Of all objects, and on a disk also of those that are half-written."""
    if settings.objects_url:
        return [Path(found["path"]) for page in obstore.list(from_url(settings.objects_url)) for found in page]
    folder = settings.data_dir / OBJECTS
    return [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
