"""The API over a real store, with one worker that has announced itself and runs nothing by itself."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import pytest
from flask import Flask
from flask.testing import FlaskClient
from redis import Redis
from werkzeug.serving import make_server

from app import create_app
from domain.model import NO_TOKENIZER, ModelCard
from domain.operation import OperationError
from settings import Settings
from store import keys
from store.store import Store, open_store
from store.workers import Announcement

CARD = ModelCard(name="org/tiny", vocab_size=64, context_length=32, adapter_width=1000)
BARE = ModelCard(name="bare", vocab_size=16, context_length=8, tokenizer_fault=NO_TOKENIZER)
WORKER = "worker-1"
SESSIONS = "/v1/rl/training-sessions"


class Api:
    """A client with the words of the API."""

    def __init__(self, client: FlaskClient, store: Store, redis: Redis) -> None:
        self.client: Any = client
        self.store = store
        self.redis: Any = redis

    def create(self, **body: object) -> Any:
        return self.client.post(SESSIONS, json={"base_model": CARD.name, **body})

    def session(self, **body: object) -> str:
        """The path of a new session."""
        return f"{SESSIONS}/{self.create(**body).json['session_id']}"

    def sample(self, session: str, **headers: str) -> str:
        """The id of a small sample operation."""
        body = {"prompt": {"chunks": [{"encoded_text": {"tokens": [1, 2]}}]}, "sampling_params": {"max_tokens": 2}}
        response = self.client.post(f"{session}:sample", json=body, headers=headers)
        assert response.status_code == 200, response.text
        return str(response.json["operation_id"])

    def begin(self, session: str) -> None:
        """The worker finishes the session's creation, so that its operations may run."""
        (creation,) = self.redis.zrange(keys.session_queue(session.rpartition("/")[2]), 0, 0)
        self.finish(creation.decode(), None)

    def finish(self, operation_id: str, outcome: msgspec.Struct | OperationError | None) -> None:
        """The worker claims the operation and ends it."""
        claim = self.store.claims.claim(operation_id, WORKER, str(uuid4()))
        assert claim is not None
        assert self.store.claims.finish(claim, outcome)


@pytest.fixture
def settings(redis_url: str, tmp_path: Path) -> Settings:
    return Settings(
        data_dir=tmp_path,
        redis_url=redis_url,
        # The worker beats once, before a test that may start programs of its own.
        heartbeat_timeout=60.0,
        default_wait=0.05,
        max_wait=2.0,
        max_body_bytes=100_000,
        max_waiting_operations=3,
    )


def announcement(capacity: int = 100, free_bytes: int = 1 << 30) -> Announcement:
    return Announcement(
        host="host",
        pid=1,
        device="cpu",
        models=(CARD, BARE),
        capacity=capacity,
        resident=0,
        resident_bytes=0,
        free_bytes=free_bytes,
        reserved_bytes=0,
        decode_utilization=0.75,
        training_utilization=0.5,
    )


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    Redis.from_url(settings.redis_url).flushall()
    store = open_store(settings)
    store.workers.beat(WORKER, announcement(capacity=100))
    yield store
    store.close()


@pytest.fixture
def app(settings: Settings, store: Store) -> Flask:
    return create_app(settings, store)


@pytest.fixture
def api(app: Flask, store: Store, settings: Settings) -> Api:
    return Api(app.test_client(), store, Redis.from_url(settings.redis_url))


@pytest.fixture
def url(app: Flask) -> Iterator[str]:
    """The application behind a real socket."""
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()
