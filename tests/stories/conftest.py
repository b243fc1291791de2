"""The whole stack with small random models: the API, two workers and the embedded server."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from stack.running import running_stack
from stack.stack import Stack
from tests.tiny_model import make_tiny_model

# Small on purpose, so that every test's batch is cut into several micro-batches and passes.
SETTINGS = {"CELERITY_MICRO_BATCH_TOKENS": "64", "CELERITY_TORCH_THREADS": "1", "CELERITY_DEVICE": "cpu"}


@pytest.fixture(scope="session")
def models_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    make_tiny_model(folder / "tiny")
    make_tiny_model(folder / "uniform", zero_head=True)
    make_tiny_model(folder / "tied", tied=True)
    return folder


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory, models_dir: Path) -> Iterator[Stack]:
    with running_stack(tmp_path_factory.mktemp("stack"), models_dir, SETTINGS, workers=2) as stack:
        yield stack


@pytest.fixture(scope="session")
def http(stack: Stack) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=stack.url, timeout=60.0) as client:
        yield client
