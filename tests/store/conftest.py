"""A store on both servers: fakeredis for speed, the real embedded server for the truth."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import fakeredis
import msgspec
import pytest
from redis import Redis

from domain.model import ModelCard
from domain.redis_url import RedisUrl
from domain.session import LoraConfig, Session, SessionSpec
from settings import Settings
from store.access import rule
from store.connection import RawRedis, connect
from store.dispatch import Released
from store.objects import open_objects
from store.store import Store
from store.workers import Announcement

CARD = ModelCard(name="org/tiny", vocab_size=64, context_length=32)
SPEC = SessionSpec(base_model=CARD, lora=LoraConfig(), seed=7)
WORKER = "worker-1"


def announcement(**changes: int) -> Announcement:
    sizes: dict[str, Any] = {
        "capacity": 100,
        "resident": 0,
        "resident_bytes": 0,
        "free_bytes": 1 << 30,
        "reserved_bytes": 1 << 20,
    } | changes
    return Announcement(host="host", pid=1, device="cpu", models=(CARD,), **sizes)


class Outbox:
    """Stands where the broker is: the messages that were sent, in order."""

    def __init__(self) -> None:
        self.sent: list[Released] = []
        self.forgotten: list[str] = []

    def publish(self, released: list[Released]) -> None:
        self.sent.extend(released)

    def forget(self, worker_id: str) -> None:
        self.forgotten.append(worker_id)

    def take(self) -> list[str]:
        """The ids sent since the last look."""
        ids = [released.operation_id for released in self.sent]
        self.sent.clear()
        return ids


class Bench:
    """A store, its outbox, and the moves of a worker, in the fewest words."""

    def __init__(self, redis: Redis, settings: Settings, user: RawRedis | None = None) -> None:
        """The store speaks to the server as `user`, where there is one."""
        self.redis = redis
        self.settings = settings
        self.outbox = Outbox()
        self.objects = open_objects("", settings.data_dir)
        self.user = user or redis
        self.store = Store(self.user, self.objects, self.outbox, settings)  # type: ignore[arg-type]
        self.beat(WORKER)

    def beat(self, worker_id: str) -> None:
        self.store.workers.beat(worker_id, announcement())

    def running_session(self) -> Session:
        """A session whose creation its worker has finished."""
        session = self.store.sessions.create(SPEC, [WORKER])
        self.run(self.outbox.take()[0])
        return self.store.sessions.get(session.id)

    def pass_time(self, operation_id: str) -> None:
        """The operation, if it waits for a worker, has waited since long ago."""
        self.redis.zadd("celerity:due", {operation_id: 1.0}, xx=True)

    def claim(self, operation_id: str, worker_id: str = WORKER):  # type: ignore[no-untyped-def]
        return self.store.claims.claim(operation_id, worker_id, str(uuid4()))

    def run(self, operation_id: str, outcome=None) -> bool:  # type: ignore[no-untyped-def]
        """Claims and finishes."""
        return self.store.claims.finish(self.claim(operation_id), outcome)


def with_settings(bench: Bench, **changes: float) -> Store:
    """The bench's store under other settings."""
    settings = msgspec.structs.replace(bench.settings, **changes)
    return Store(bench.user, bench.objects, bench.outbox, settings)  # type: ignore[arg-type]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(
        data_dir=tmp_path, max_waiting_operations=5, max_running_samples=3, inline_bytes=200, requests_kept=0
    )


@pytest.fixture(params=["fakeredis", "valkey"])
def bench(request: pytest.FixtureRequest, settings: Settings) -> Iterator[Bench]:
    if request.param == "fakeredis":
        bench = Bench(fakeredis.FakeRedis(), settings)
    else:
        redis = Redis.from_url(request.getfixturevalue("redis_url"))
        redis.flushdb()
        # So that whatever the store does is known to be allowed by the least that the documentation asks for.
        bench = Bench(redis, settings, connect(least_user(redis)))
    yield bench
    bench.store.close()


def least_user(redis: Redis) -> RedisUrl:
    """The server's address for a user who may do what Celerity needs, and nothing else."""
    place = redis.connection_pool.connection_kwargs
    url = RedisUrl(host=place["host"], port=place["port"], username="least", password="an/odd:p@ss%word")
    allow(redis, url, rule(url))
    return url


def allow(redis: Redis, url: RedisUrl, rule: str) -> None:
    """Makes the user of `url`, who may do what `rule` says."""
    redis.execute_command("ACL", "SETUSER", url.username, "reset", "on", f">{url.password}", *rule.split())  # type: ignore[no-untyped-call]
