"""The official SDK, as it is installed, against one running stack with a small random model."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from together import AsyncTogether, Together
from together.post_training import ModelResourcesClient, SessionClient

from stack.running import running_stack
from stack.stack import Stack
from testing.tiny_model import make_tiny_model

SETTINGS = {"CELERITY_TORCH_THREADS": "1", "CELERITY_DEVICE": "cpu", "CELERITY_INLINE_BYTES": "200000"}
KEY = "any"


@pytest.fixture(scope="session")
def models_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    make_tiny_model(folder / "tiny")
    return folder


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory, models_dir: Path) -> Iterator[Stack]:
    with running_stack(tmp_path_factory.mktemp("stack"), models_dir, SETTINGS) as stack:
        yield stack
        stack.hasten()


@pytest.fixture(scope="session")
def base_url(stack: Stack) -> str:
    """What TOGETHER_BASE_URL is set to."""
    return f"{stack.url}/together"


@pytest.fixture(scope="session")
def sdk(base_url: str) -> Iterator[Together]:
    # Strict: an answer that its types do not allow raises.
    with Together(base_url=base_url, api_key=KEY, _strict_response_validation=True) as client:
        yield client


@pytest.fixture
def async_sdk(base_url: str) -> AsyncTogether:
    return AsyncTogether(base_url=base_url, api_key=KEY, _strict_response_validation=True)


@pytest.fixture(scope="session")
def resources(base_url: str) -> Iterator[ModelResourcesClient]:
    with ModelResourcesClient.create(base_url=base_url, api_key=KEY, base_model="tiny") as resources:
        yield resources


@pytest.fixture
def session(resources: ModelResourcesClient) -> Iterator[SessionClient]:
    """A fresh session, stopped at the end."""
    with resources.create_session(lora_config={"rank": 4, "seed": 7}) as session:
        yield session
