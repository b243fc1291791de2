"""What the API looks at before it serves."""

import os
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from socket import AF_INET, AF_INET6, AF_UNIX

import pytest
from redis import Redis

from app.starting import check_exposure, check_store
from domain.api_key import KeyLimits
from settings import Settings
from stack.process import ROOT
from store.store import open_store

# As docker-compose.yml has it, and as the command line does.
COMMANDS = {
    "gunicorn": ["gunicorn", "-c", "app/gunicorn.conf.py", "--bind", "0.0.0.0:0", "app.wsgi:application"],
    "celerity": ["cli", "api", "--bind", "0.0.0.0:0"],
}


@pytest.fixture
def keyless(redis_url: str, tmp_path: Path) -> Settings:
    """Of an API for which no key was ever made."""
    with Redis.from_url(redis_url) as redis:
        redis.flushdb()
    return Settings(redis_url=redis_url, data_dir=tmp_path)


@pytest.mark.parametrize("program", COMMANDS)
def test_an_api_without_keys_is_not_served_to_other_hosts(program: str, keyless: Settings) -> None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CELERITY_")}
    given = {**clean, "CELERITY_REDIS_URL": keyless.redis_url, "DATA_DIR": str(keyless.data_dir)}
    command = [sys.executable, "-m", *COMMANDS[program]]
    ended = subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == (
        "celerity: 0.0.0.0 can be reached from other hosts: set CELERITY_API_KEYS or run `celerity keys create` first"
    )
    assert "Traceback" not in ended.stderr and "Booting worker" not in ended.stderr


@pytest.mark.parametrize(
    ("family", "address", "is_open"),
    [
        (AF_INET, "127.0.0.1", False),
        (AF_INET, "127.0.0.2", False),
        (AF_INET, "0.0.0.0", True),
        (AF_INET6, "::1", False),
        (AF_INET6, "::", True),
        (AF_UNIX, "", False),
    ],
)
def test_whether_others_reach_it_is_told_by_where_it_listens(
    tmp_path: Path, keyless: Settings, family: int, address: str, is_open: bool
) -> None:
    place = str(tmp_path / "api.sock") if family == AF_UNIX else (address, 0)
    with socket.socket(family) as listening:
        listening.bind(place)
        check_exposure(Settings(api_keys=("secret",)), [listening])
        if is_open:
            with pytest.raises(ValueError, match=f"{address} can be reached from other hosts"):
                check_exposure(keyless, [listening])
        else:
            check_exposure(keyless, [listening])


def test_a_stored_key_closes_an_api_that_others_reach_also_when_it_is_revoked(keyless: Settings) -> None:
    with socket.socket() as listening, closing(open_store(keyless)) as store:
        listening.bind(("0.0.0.0", 0))
        with pytest.raises(ValueError, match="can be reached from other hosts"):
            check_exposure(keyless, [listening])
        made, _ = store.api_keys.create("alice", KeyLimits())
        check_exposure(keyless, [listening])
        store.api_keys.revoke(made.id)
        check_exposure(keyless, [listening])


def test_an_api_that_others_reach_is_not_served_when_nobody_can_tell_whether_it_has_keys(tmp_path: Path) -> None:
    away = Settings(redis_url=f"unix://{tmp_path}/nobody.sock", data_dir=tmp_path)
    with socket.socket() as listening:
        listening.bind(("0.0.0.0", 0))
        with pytest.raises(
            ValueError, match=r"0\.0\.0\.0 .* Redis is away .*: start it first, or set CELERITY_API_KEYS"
        ):
            check_exposure(away, [listening])


def test_an_api_starts_before_its_redis(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    check_store(Settings(redis_url=f"unix://{tmp_path}/nobody.sock", data_dir=tmp_path))
    assert "Redis cannot be reached just now" in caplog.text
