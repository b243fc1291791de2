"""A worker while object storage is away: what was accepted waits for it."""

from collections.abc import Callable
from typing import Any

import pytest

from domain.checkpoint import Checkpoint, CheckpointRequest
from domain.operation import ErrorCode, OperationKind, OperationStatus
from store.errors import ObjectsAwayError
from store.objects import Objects
from tests.bucket import Bucket
from tests.engine.calls import packed, random_sample, sample_request
from tests.tcp_proxy import TcpProxy
from tests.workers.conftest import Begin
from tests.workers.worker_harness import WorkerHarness

TRAIN = OperationKind.FORWARD_BACKWARD
REQUEST = packed([random_sample(7, 6)])


class Outage:
    """Storage that is away for the next `left` calls of one method whose path begins so. `during` is called in each
    pause of whoever waits."""

    def __init__(self, patch: pytest.MonkeyPatch, method: str, prefix: str, left: float) -> None:
        self.left, self.pauses = left, list[float]()
        self.during: Callable[[], object] = lambda: None
        call = getattr(Objects, method)

        def away(objects: Objects, path: str, *data: Any) -> Any:
            if path.startswith(prefix) and self.left > 0:
                self.left -= 1
                raise ObjectsAwayError("503 Slow Down")
            return call(objects, path, *data)

        patch.setattr(Objects, method, away)
        patch.setattr("workers.retry.time.sleep", self._pause)

    def _pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.during()


@pytest.mark.parametrize(("method", "prefix"), [("get", "requests/"), ("put", "results/")])
def test_an_operation_waits_to_read_its_request_and_to_write_its_result(
    begin: Begin, monkeypatch: pytest.MonkeyPatch, method: str, prefix: str
) -> None:
    harness = begin(inline_bytes=0)
    session, undisturbed = harness.session(), harness.session()
    outage = Outage(monkeypatch, method, prefix, 3)
    assert harness.run(session, TRAIN, REQUEST).status is OperationStatus.COMPLETED
    assert outage.pauses == [0.1, 0.2, 0.4]
    harness.run(undisturbed, TRAIN, REQUEST)
    assert harness.adapter(session) == harness.adapter(undisturbed)
    harness.change()
    assert harness.adapter(session) == harness.adapter(undisturbed)


def test_a_session_is_restored_when_its_snapshot_can_be_read_again(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = begin(inline_bytes=0)
    session = harness.session()
    harness.run(session, TRAIN, REQUEST)
    before = harness.adapter(session)
    harness.change()
    outage = Outage(monkeypatch, "get", f"requests/{replayed(harness, session.id)}", 2)
    assert harness.adapter(session) == before
    assert outage.pauses == [0.1, 0.2]


def replayed(harness: WorkerHarness, session_id: str) -> str:
    """The id of the one operation that a replay needs."""
    (operation,) = (each for each in harness.store.operations.list(session_id, 9, 0) if each.kind is TRAIN)
    return operation.id


def test_one_that_cannot_read_its_request_for_too_long_fails_and_the_next_runs(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = begin(inline_bytes=0, objects_timeout=0.05)
    session = harness.session()
    Outage(monkeypatch, "get", "requests/", 1)
    failed = harness.run(session, TRAIN, REQUEST)
    assert failed.error is not None and failed.error.code is ErrorCode.INTERNAL_ERROR
    assert "CELERITY_OBJECTS_TIMEOUT" in failed.error.message
    assert harness.run(session, TRAIN, REQUEST).status is OperationStatus.COMPLETED


def test_one_that_is_taken_away_while_it_waits_is_left_to_whoever_has_it(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = begin(inline_bytes=0)
    session, undisturbed = harness.session(), harness.session()
    outage, worker_id = Outage(monkeypatch, "put", "results/", 1), harness.worker.worker_id
    outage.during = lambda: harness.store.sessions.move(session.id, worker_id, worker_id)
    assert harness.run(session, TRAIN, REQUEST).status is OperationStatus.COMPLETED
    assert len(outage.pauses) == 1, "the first attempt gave up, the second was not disturbed"
    harness.run(undisturbed, TRAIN, REQUEST)
    assert harness.adapter(session) == harness.adapter(undisturbed)


@pytest.mark.parametrize("kind", [OperationKind.TRAINING_CHECKPOINT, OperationKind.INFERENCE_CHECKPOINT])
def test_a_checkpoint_is_written_again_from_its_beginning(
    begin: Begin, monkeypatch: pytest.MonkeyPatch, kind: OperationKind
) -> None:
    harness = begin()
    session = harness.session()
    outage = Outage(monkeypatch, "size", "checkpoints/", 1)
    saved = harness.run(session, kind, CheckpointRequest())
    assert saved.status is OperationStatus.COMPLETED and outage.left == 0
    checkpoint = harness.store.operations.result(saved, Checkpoint)
    paths = [checkpoint.path(part, file) for part, files in checkpoint.files.items() for file in files]
    assert all(file and file.is_file() for file in map(harness.store.checkpoints.file, paths))


def test_a_checkpoint_that_cannot_be_written_in_its_time_ends_so(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    harness = begin()
    session = harness.session()
    Outage(monkeypatch, "size", "checkpoints/", float("inf"))
    monkeypatch.setattr("workers.retry.time.sleep", lambda _: None)
    operation = harness.store.operations.accept(
        session.id, OperationKind.TRAINING_CHECKPOINT, CheckpointRequest(), timeout_seconds=0.5
    )
    harness.deliver()
    failed = harness.store.operations.get(session.id, operation.id)
    assert failed.error is not None and failed.error.code is ErrorCode.TIMEOUT
    assert harness.run(session, OperationKind.SAMPLE, sample_request([[1]], max_tokens=1)).error is None


def test_a_worker_that_starts_meanwhile_waits_for_it(
    begin: Begin, bucket: Bucket, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with TcpProxy(bucket.endpoint) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{proxy.address}")
        proxy.cut()
        monkeypatch.setattr("workers.retry.time.sleep", lambda _: proxy.restore())
        harness = begin(inline_bytes=0, objects_url=bucket.url)
        assert "starting: object storage is away" in caplog.text
        assert harness.run(harness.session(), TRAIN, REQUEST).status is OperationStatus.COMPLETED
