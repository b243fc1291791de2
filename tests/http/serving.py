"""The API as it is shipped, behind a real socket."""

import http.client
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson

ROOT = Path(__file__).parents[2]
FILES = 1024


@contextmanager
def serving(port: int, **settings: str) -> Iterator[subprocess.Popen[bytes]]:
    """gunicorn with one process, which may open no more files than a shell's children may."""
    command = [sys.executable, "-m", "gunicorn", "-c", "app/gunicorn.conf.py", "-w", "1", "app.wsgi:application"]
    environment = {**os.environ, "CELERITY_HEARTBEAT_TIMEOUT": "60", **settings, "PORT": str(port)}
    server = subprocess.Popen(command, cwd=ROOT, env=environment, preexec_fn=_as_from_a_shell)
    try:
        _wait_until_alive(port)
        yield server
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(40)


def request(
    port: int, method: str, path: str, body: object = None, chunked: bool = False, timeout: float = 10, **headers: str
) -> tuple[int, dict]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    connection.request(
        method,
        path,
        body=body,  # type: ignore[arg-type]  # an iterable of bytes when chunked
        headers={"Content-Type": "application/json", **headers},
        encode_chunked=chunked,
    )
    response = connection.getresponse()
    answer = (response.status, orjson.loads(response.read()))
    connection.close()
    return answer


def _as_from_a_shell() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def _wait_until_alive(port: int) -> None:
    for _ in range(300):
        try:
            if request(port, "GET", "/healthz")[0] == 200:
                return
        except ConnectionRefusedError:
            time.sleep(0.1)
    raise TimeoutError("gunicorn did not come up")
