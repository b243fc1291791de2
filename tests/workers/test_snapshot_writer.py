"""When a snapshot is due, and that nobody waits for its writing."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

import msgspec
import pytest
from redis.exceptions import ConnectionError as RedisAway

from domain.model import ModelCard
from domain.operation import OperationKind
from domain.session import LoraConfig, SessionSpec
from settings import Settings
from store.claims import Claim
from store.store import open_store
from testing.tiny_model import make_tiny_model
from workers.engine.adapters.state import AdapterState
from workers.engine.config import EngineConfig
from workers.engine.engine import Engine
from workers.engine.failures import out_of_memory
from workers.snapshot_writer import SnapshotWriter

CLAIM = Claim(
    operation_id="o", session_id="s", kind=OperationKind.OPTIM_STEP, seq=1, epoch=1, last_change="", stored=b"",
    fence="", timeout_seconds=None,
    spec=SessionSpec(base_model=ModelCard(name="tiny", vocab_size=1, context_length=1), lora=LoraConfig(), seed=1),
)  # fmt: skip

NewWriter = Callable[..., SnapshotWriter]


@pytest.fixture
def new_writer(redis_url: str, tmp_path: Path) -> Iterator[NewWriter]:
    """Makes writers with settings of their own, of a worker that holds the adapter "s"."""
    settings = Settings(data_dir=tmp_path, redis_url=redis_url)
    store, engine = open_store(settings), Engine(EngineConfig(device="cpu", kernels="native", torch_threads=1))
    engine.start()
    engine.create_adapter("s", make_tiny_model(tmp_path / "tiny"), LoraConfig(rank=2), seed=0).result()

    def new(**policy: float) -> SnapshotWriter:
        return SnapshotWriter(store, engine, msgspec.structs.replace(settings, **policy))

    yield new
    engine.close()
    store.close()


def steps_taken(writer: SnapshotWriter, *steps: int) -> list[int]:
    return [step for step in steps if writer.after_step(CLAIM, step)]


def test_one_is_taken_every_so_many_steps(new_writer: NewWriter) -> None:
    assert steps_taken(new_writer(snapshot_steps=3, snapshot_seconds=3600.0), *range(1, 11)) == [3, 6, 9]


def test_one_is_taken_at_the_next_step_after_so_many_seconds(new_writer: NewWriter) -> None:
    assert steps_taken(new_writer(snapshot_steps=1000, snapshot_seconds=1e-9), 1, 2, 3) == [1, 2, 3]


def test_one_is_taken_when_the_session_has_been_elsewhere_or_begins_again(new_writer: NewWriter) -> None:
    writer = new_writer(snapshot_steps=3, snapshot_seconds=3600.0)
    assert steps_taken(writer, 4, 5, 6) == [6]
    assert steps_taken(writer, 2) == [2]


def test_a_step_does_not_fail_for_want_of_memory_for_its_snapshot(
    new_writer: NewWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, full = new_writer(snapshot_steps=1, snapshot_seconds=3600.0), Future[AdapterState]()
    full.set_exception(out_of_memory("no room for a copy"))
    with monkeypatch.context() as patch:
        patch.setattr(writer._engine, "copy_adapter", lambda _: full)
        assert writer.after_step(CLAIM, 1) is None
    assert writer.after_step(CLAIM, 2)


def test_nobody_waits_for_its_writing_but_the_end_of_the_worker(
    new_writer: NewWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, may_write = new_writer(snapshot_steps=1, snapshot_seconds=3600.0), threading.Event()
    written: list[int] = []

    def save(claim: Claim, *_: object) -> bool:
        assert may_write.wait(10)
        written.append(claim.seq)
        return True

    monkeypatch.setattr(writer._store.snapshots, "save", save)
    for step in (1, 2):
        write = writer.after_step(msgspec.structs.replace(CLAIM, seq=step), step)
        assert write
        write()
    assert written == []
    may_write.set()
    writer.close()
    assert written == [1, 2]


def test_writing_waits_until_redis_is_back_and_what_fails_is_logged_and_stops_no_later_one(
    new_writer: NewWriter, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    writer, tried = new_writer(snapshot_steps=1, snapshot_seconds=3600.0), list[int]()

    def save(claim: Claim, *_: object) -> bool:
        tried.append(claim.seq)
        if tried == [1]:
            raise RedisAway
        if claim.seq == 2:
            raise PermissionError("the disk is read-only")
        return True

    monkeypatch.setattr(writer._store.snapshots, "save", save)
    monkeypatch.setattr("workers.retry.time.sleep", lambda _: None)
    for step in (1, 2, 3):
        write = writer.after_step(msgspec.structs.replace(CLAIM, seq=step), step)
        assert write
        write()
    writer.close()
    assert tried == [1, 1, 2, 3]
    assert "the disk is read-only" in caplog.text
