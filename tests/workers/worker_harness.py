"""One worker after another in this process: real tasks, a real engine, the real server."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from redis import Redis

from domain.checkpoint import Checkpoint
from domain.model import ModelCard
from domain.operation import Operation, OperationKind
from domain.sample import SampleResult
from domain.session import LoraConfig, Session, SessionSpec
from settings import Settings
from store import keys
from store.store import Store
from testing.tiny_model import make_tiny_model
from tests.engine.calls import sample_request
from workers import process
from workers.celery_app import app
from workers.runtime import Runtime


class WorkerHarness:
    """The worker of the moment, and what it is given."""

    def __init__(self, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
        self._settings, self._monkeypatch = settings, monkeypatch
        self._redis: Any = Redis.from_url(settings.redis_url)
        self._redis.flushdb()
        self.worker = self._begin()

    @property
    def store(self) -> Store:
        return self.worker.store

    @property
    def card(self) -> ModelCard:
        return next(card for card in self.worker.catalog.cards() if card.name == "tiny")

    def _begin(self) -> Runtime:
        worker = Runtime(self._settings)
        worker.start()
        worker.store.workers.beat(worker.worker_id, worker.announcement())
        self._monkeypatch.setattr(process, "_runtime", worker)
        return worker

    def end(self) -> None:
        self.worker.close()
        self.store.close()

    def change(self, **settings: Any) -> None:
        """The worker leaves, and the next, with some settings changed, takes over what it held."""
        self.end()
        self._settings = msgspec.structs.replace(self._settings, **settings)
        self.worker = self._begin()
        self.store.janitor.move_sessions_of(self.store.workers.left())
        self.deliver()

    def deliver(self) -> None:
        """Runs what is in the worker's queue, and what that releases, as Celery would."""
        while message := self._redis.rpop(keys.BROKER + self.worker.worker_id):
            headers = json.loads(message)["headers"]
            app.tasks[headers["task"]].apply(task_id=headers["id"])

    def session(self, checkpoint: Checkpoint | None = None, **spec: Any) -> Session:
        """A new session with dropout, which is running."""
        asked: dict[str, Any] = {"base_model": self.card, "lora": LoraConfig(dropout=0.2), "seed": 3} | spec
        session = self.store.sessions.create(SessionSpec(**asked), [self.worker.worker_id], checkpoint=checkpoint)
        self.deliver()
        return session

    def run(self, session: Session, kind: OperationKind, request: msgspec.Struct) -> Operation:
        """An operation of the session, once it has ended."""
        operation = self.store.operations.accept(session.id, kind, request)
        self.deliver()
        return self.store.operations.get(session.id, operation.id)

    def sample(self, session: Session) -> list[list[int]]:
        """The tokens of a few greedy completions."""
        operation = self.run(session, OperationKind.SAMPLE, sample_request([[1, 2], [3]], max_tokens=4, temperature=0))
        return [
            sequence.tokens.tolist() for sequence in self.store.operations.result(operation, SampleResult).sequences
        ]

    def adapter(self, session: Session) -> bytes:
        """All that the adapter is, brought into memory for a sample if it is not there."""
        self.sample(session)
        return self.worker.engine.copy_adapter(session.id).result().to_bytes()


@contextmanager
def harness(redis_url: str, folder: Path, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> Iterator[WorkerHarness]:
    """A worker for the model "tiny" and with these settings."""
    make_tiny_model(folder / "models" / "tiny")
    places: dict[str, Any] = {"data_dir": folder, "redis_url": redis_url, "models_dir": folder / "models"}
    app.loader.import_default_modules()
    for kind in OperationKind:
        monkeypatch.setattr(app.tasks[kind.task_name], "store_eager_result", True)
    harness = WorkerHarness(Settings(device="cpu", torch_threads=1, **places, **settings), monkeypatch)
    yield harness
    harness.end()
