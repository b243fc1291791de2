"""The whole stack with small random models: the API, two workers and the embedded server."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from models import bundled
from stack.running import running_stack
from stack.stack import Stack
from testing.tiny_model import make_tiny_model
from tests.model_table import make_family
from tests.stories.broken import make_broken_models

# Small on purpose, so that every test's batch is cut into several micro-batches and passes.
SETTINGS = {"CELERITY_MICRO_BATCH_TOKENS": "64", "CELERITY_TORCH_THREADS": "1", "CELERITY_DEVICE": "cpu"}
# For the stack that things are done to: quick to notice, and with little room for anything.
FRAGILE = {
    **SETTINGS,
    "CELERITY_HEARTBEAT_INTERVAL": "0.2",
    "CELERITY_HEARTBEAT_TIMEOUT": "3",
    "CELERITY_REDISPATCH_AFTER": "1",
    "CELERITY_SNAPSHOT_STEPS": "4",
    "CELERITY_INLINE_BYTES": "300",
    "CELERITY_RESIDENT_SESSIONS": "2",
}


@pytest.fixture(scope="session")
def models_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    make_tiny_model(folder / "tiny")
    make_tiny_model(folder / "uniform", zero_head=True)
    make_tiny_model(folder / "tied", tied=True)
    make_family("mixtral", folder / "mixture")
    make_broken_models(folder)
    # What the documentation's examples name, with token ids as large as theirs.
    make_tiny_model(folder / bundled.NAME, vocab_size=4096)
    # 90 MB, so that writing it takes a while.
    make_tiny_model(folder / "broad", vocab_size=8192, layers=4, hidden_size=512, intermediate_size=2048, std=0.02)
    return folder


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory, models_dir: Path) -> Iterator[Stack]:
    with running_stack(tmp_path_factory.mktemp("stack"), models_dir, SETTINGS, workers=2) as stack:
        yield stack
        stack.hasten()


@pytest.fixture(scope="session")
def http(stack: Stack) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=stack.url, timeout=60.0) as client:
        yield client


@pytest.fixture(scope="session")
def fragile(tmp_path_factory: pytest.TempPathFactory, models_dir: Path) -> Iterator[Stack]:
    with running_stack(tmp_path_factory.mktemp("fragile"), models_dir, FRAGILE) as stack:
        yield stack
        stack.hasten()


@pytest.fixture
def client(fragile: Stack) -> Iterator[httpx.Client]:
    """Of the fragile stack."""
    with httpx.Client(base_url=fragile.url, timeout=60.0) as client:
        yield client
    fragile.wait_ready()
