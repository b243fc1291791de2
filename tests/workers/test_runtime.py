"""What a worker says of itself, and how it leaves."""

import threading

import msgspec
import pytest

from contract.operation import OperationKind
from contract.optim_step import OptimStepRequest
from contract.session import SessionStatus
from tests.engine.asking import packed, random_sample
from tests.workers.conftest import Begin


def test_it_announces_its_limits_what_it_measures_and_what_it_counts(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    shift = begin(max_worker_sessions=7, reserved_bytes=11)
    session = shift.session()
    monkeypatch.setattr(shift.worker.engine, "free_bytes", lambda: 13)
    said = shift.worker.announcement()
    assert (said.capacity, said.reserved_bytes, said.free_bytes) == (7, 11, 13)
    assert (said.resident, said.resident_bytes) == (1, session.spec.adapter_bytes)
    shift.store.sessions.stop(session.id)
    shift.deliver()
    assert (shift.worker.announcement().resident, shift.worker.announcement().resident_bytes) == (0, 0)


def test_what_it_has_copied_is_written_before_it_leaves(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    shift, done, leaves = begin(snapshot_steps=1), list[str](), threading.Event()
    session = shift.session()

    def save(*_: object) -> bool:
        leaves.wait(0.3)
        done.append("written")
        return True

    def leave(_: str) -> None:
        leaves.set()
        done.append("left")

    monkeypatch.setattr(shift.store.snapshots, "save", save)
    monkeypatch.setattr(shift.store.workers, "leave", leave)
    for kind, request in (
        (OperationKind.FORWARD_BACKWARD, packed([random_sample(0, 3)])),
        (OperationKind.OPTIM_STEP, OptimStepRequest()),
    ):
        shift.run(session, kind, request)
    shift.worker.close()
    assert done == ["written", "left"]


def test_one_that_drains_gives_its_sessions_away_first_and_ends_in_the_stated_time(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    shift, done = begin(drain_seconds=25.0), list[object]()
    monkeypatch.setattr("time.sleep", lambda seconds: done.append((seconds, shift.store.workers.left())))
    monkeypatch.setattr("os._exit", done.append)
    shift.worker.drain()
    assert done == [(25.0, [shift.worker.worker_id]), 0]


def test_a_session_whose_base_model_cannot_be_loaded_ends_in_error_with_the_reason(begin: Begin) -> None:
    shift = begin()
    session = shift.session(base_model=msgspec.structs.replace(shift.card, name="nowhere"))
    ended = shift.store.sessions.get(session.id)
    assert ended.status is SessionStatus.ERROR
    assert "nowhere could not be loaded" in (ended.reason or "")
