from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from domain.session import LoraConfig
from testing.tiny_model import make_tiny_model
from tests.engine.configured_kernels import KERNELS, choose_configured
from workers.engine.config import EngineConfig
from workers.engine.device.threads import choose_vector_math
from workers.engine.engine import Engine
from workers.engine.kernels.kernel import choose

StartEngine = Callable[..., Engine]


@pytest.fixture(scope="session", autouse=True)
def kernels_of_the_run() -> None:
    choose_vector_math()
    choose_configured()


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def start_engine() -> Iterator[StartEngine]:
    """Starts engines on the CPU that are closed at the end; settings override small defaults."""
    engines = []

    def start(**settings: Any) -> Engine:
        engine = Engine(EngineConfig(**{"device": "cpu", "torch_threads": 1, "kernels": KERNELS, **settings}))
        engine.start()
        engines.append(engine)
        return engine

    yield start
    for engine in engines:
        engine.close()


@pytest.fixture
def engine(start_engine: StartEngine, tiny: Path) -> Engine:
    """With one session "s", rank 4, no dropout, over the tiny model."""
    engine = start_engine()
    engine.create_adapter("s", tiny, LoraConfig(rank=4, alpha=8, dropout=0.0), seed=0).result()
    return engine


@pytest.fixture(params=["native", "torch"])
def kernels(request: pytest.FixtureRequest) -> Iterator[str]:
    """Once with our kernels, once without."""
    choose(request.param)
    yield request.param
    choose_configured()


@pytest.fixture
def native() -> Iterator[None]:
    """Our kernels, which promise bits that torch's operations do not."""
    choose("native")
    yield
    choose_configured()
