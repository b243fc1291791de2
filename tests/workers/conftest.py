"""Workers of a test's own."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.workers.worker_harness import WorkerHarness, harness

Begin = Callable[..., WorkerHarness]


@pytest.fixture
def begin(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Begin]:
    """Puts a worker on, with settings of its own."""
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(harness(redis_url, tmp_path, monkeypatch, **settings))
