"""A stack of small commands."""

import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from stack.address import free_port
from stack.log import Log
from stack.plan import read_plan
from stack.stack import Stack


@pytest.fixture
def output() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def stack(tmp_path: Path, output: io.StringIO) -> Iterator[Stack]:
    stack = Stack(read_plan({"DATA_DIR": str(tmp_path), "PORT": str(free_port())}), Log(output))
    yield stack
    stack.hasten()
    stack.stop()
