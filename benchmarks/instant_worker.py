"""A worker that announces itself to a running stack and does nothing by itself: the benchmark ends its operations.

So a benchmark measures the path of an operation alone, through the real API, scripts and server.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
from redis import Redis

from benchmarks.finished import announcement
from celerity_client import Client
from domain.model import ModelCard
from settings import Settings
from stack.running import running_stack
from store import keys
from store.store import Store, open_store
from testing.tiny_model import make_tiny_model

MODEL = "instant_worker"
WORKER = "instant_worker"
# Its one heartbeat lasts.
SETTINGS = {"CELERITY_DEVICE": "cpu", "CELERITY_HEARTBEAT_TIMEOUT": "36000"}


class InstantWorker:
    def __init__(self, store: Store, redis: Any, url: str) -> None:
        self.store, self.redis, self.url = store, redis, url
        self._client = Client(url)

    def session(self) -> str:
        """The id of a new session that this worker holds, its creation finished."""
        session_id = self._client.create_session(MODEL).id
        (creation,) = self.redis.zrange(keys.session_queue(session_id), 0, 0)
        self.finish(creation.decode(), None)
        return session_id

    def finish(self, operation_id: str, outcome: msgspec.Struct | None) -> None:
        """Claims the operation, whose turn must have come, and ends it."""
        claim = self.store.claims.claim(operation_id, WORKER, str(uuid4()))
        assert claim is not None
        assert self.store.claims.finish(claim, outcome)


@contextmanager
def instant_worker(folder: Path, vocabulary: int = 256, context: int = 8192) -> Iterator[InstantWorker]:
    """A stack in `folder`, with a worker of its own that stays idle, and this one beside it."""
    make_tiny_model(folder / "models" / "tiny")
    card = ModelCard(name=MODEL, vocab_size=vocabulary, context_length=context, adapter_width=1)
    with running_stack(folder / "data", folder / "models", SETTINGS) as stack:
        here = Settings(data_dir=folder / "data")
        redis_url = here.embedded_url_file.read_text()
        store = open_store(msgspec.structs.replace(here, redis_url=redis_url))
        store.workers.beat(WORKER, announcement(card))
        yield InstantWorker(store, Redis.from_url(redis_url), stack.url)
        store.close()
