"""Waiting for what other processes do, and for their end."""

import time
from collections.abc import Callable

import psutil

TIMEOUT_SECONDS = 60.0


def eventually(
    condition: Callable[[], object],
    describe: Callable[[], str] = lambda: "it did not happen in time",
    seconds: float = TIMEOUT_SECONDS,
) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, describe()
        time.sleep(0.02)


def is_running(process: psutil.Process) -> bool:
    """Not ended, and not ended and waiting for its parent to notice either."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
