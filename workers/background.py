"""Runs a function in a thread whose caller may stop waiting."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from workers.engine.commit import answer, fail

T = TypeVar("T")


def in_background(action: Callable[[], T]) -> "Future[T]":
    """Runs the action in a new thread, which goes on to its end even if the future is cancelled."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            answer(future, action())
        except Exception as error:  # noqa: BLE001 - raised in the thread that waits
            fail(future, error)

    threading.Thread(target=run, name="background", daemon=True).start()
    return future
