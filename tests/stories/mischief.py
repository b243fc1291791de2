"""What is done to a stack, and how long one waits for it to recover."""

import time
from collections.abc import Callable

from stack.stack import Stack

PATIENCE_SECONDS = 60.0


def kill(stack: Stack, name: str) -> None:
    stack.processes[name].kill()


def restart(stack: Stack, name: str) -> None:
    stack.run(stack.processes[name].service)
    stack.wait_ready()


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
