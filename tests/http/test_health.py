"""What a container's healthcheck asks of its worker."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result
from redis import Redis

from cli.health import health
from settings import Settings
from store import keys
from store.access import rule
from store.store import open_store
from tests.store.conftest import allow, announcement, least_user


@pytest.fixture
def beat(redis_url: str, tmp_path: Path) -> Iterator[Callable[[str], None]]:
    """One heartbeat of a worker of that host."""
    with Redis.from_url(redis_url) as redis:
        redis.flushdb()
    store = open_store(Settings(data_dir=tmp_path, redis_url=redis_url))

    def beat(host: str) -> None:
        store.workers.beat(f"{host}-1", msgspec.structs.replace(announcement(), host=host))

    yield beat
    store.close()


def asked(redis_url: str, tmp_path: Path) -> Result:
    return CliRunner().invoke(health, env={"CELERITY_REDIS_URL": redis_url, "DATA_DIR": str(tmp_path)})


def test_a_worker_is_healthy_while_its_heartbeat_is_fresh(
    beat: Callable[[str], None], redis_url: str, tmp_path: Path
) -> None:
    host = socket.gethostname()
    assert asked(redis_url, tmp_path).exit_code == 1
    beat("another-host")
    assert asked(redis_url, tmp_path).output == f"Error: no worker of {host} is alive\n"
    beat(host)
    result = asked(redis_url, tmp_path)
    assert result.exit_code == 0 and result.output.startswith(f"{host}-1: heartbeat 0.")
    with Redis.from_url(redis_url) as redis:
        redis.zincrby(keys.WORKERS, -(Settings().heartbeat_timeout + 1), f"{host}-1")
    assert asked(redis_url, tmp_path).exit_code == 1


def test_asking_for_a_worker_tries_and_writes_nothing_else(redis_url: str, tmp_path: Path) -> None:
    with Redis.from_url(redis_url) as redis:
        redis.flushdb()
        redis.config_resetstat()
        asked(redis_url, tmp_path)
        called = {name.removeprefix("cmdstat_") for name in redis.info("commandstats")}
    assert "zrangebyscore" in called
    assert not called & {"set", "hset", "sadd", "zadd", "xadd", "lpush", "publish", "multi", "expire", "del"}


def test_a_user_who_may_not_ask_is_told_so(redis_url: str, tmp_path: Path) -> None:
    with Redis.from_url(redis_url) as admin:
        user = least_user(admin)
        allow(admin, user, f"{rule(user)} -zrangebyscore")
    result = asked(user.broker_url, tmp_path)
    assert result.exit_code == 1 and result.output.startswith("Error: Redis: ")
    assert "'zrangebyscore'" in result.output and "`celerity doctor` says what to grant" in result.output


def test_without_redis_no_worker_is_healthy(tmp_path: Path) -> None:
    result = asked("redis://127.0.0.1:1/0", tmp_path)
    assert result.exit_code == 1 and result.output.startswith("Error: Redis cannot be reached")
