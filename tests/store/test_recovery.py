"""When a worker is gone its sessions move, and nothing that was accepted is lost or done twice."""

import pytest

from domain.operation import ErrorCode, OperationError, OperationKind, OperationStatus
from domain.optim_step import OptimStepRequest, OptimStepResult
from domain.session import SessionStatus
from store import keys
from store.claims import SuspectError
from store.refusals import RefusedError
from store.snapshots import Kept
from tests.store.conftest import SPEC, WORKER, Bench
from workers.lost_operations import LostOperations

SAMPLE, TRAIN, STEP = OperationKind.SAMPLE, OperationKind.FORWARD_BACKWARD, OperationKind.OPTIM_STEP
NEW = "worker-2"


def accept(bench: Bench, session_id: str, *kinds: OperationKind) -> list[str]:
    return [bench.store.operations.accept(session_id, kind, OptimStepRequest()).id for kind in kinds]


def kill_worker(bench: Bench) -> None:
    """Its heartbeat stops, another worker lives, and one that sweeps notices."""
    bench.beat(NEW)
    bench.redis.zadd("celerity:workers", {WORKER: 1.0})
    bench.store.janitor.move_sessions_of(bench.store.workers.lost())


def test_what_was_running_and_what_was_sent_goes_to_the_new_worker_in_order(bench: Bench) -> None:
    session = bench.running_session()
    running, sent, step = accept(bench, session.id, SAMPLE, SAMPLE, STEP)
    bench.claim(running)
    bench.outbox.take()
    kill_worker(bench)
    assert [(released.operation_id, released.worker_id) for released in bench.outbox.sent] == [
        (running, NEW),
        (sent, NEW),
    ]
    assert bench.claim(running, WORKER) is None
    bench.outbox.take()
    for operation_id in (running, sent):
        assert bench.store.claims.finish(bench.claim(operation_id, NEW), None)
    assert bench.outbox.take() == [step]
    assert bench.store.workers.sessions(NEW) == {session.id}
    assert bench.outbox.forgotten == [WORKER]


def test_what_was_sent_to_the_new_worker_and_got_lost_is_sent_again(bench: Bench) -> None:
    session = bench.running_session()
    running, sent = accept(bench, session.id, SAMPLE, SAMPLE)
    bench.claim(running)
    kill_worker(bench)
    bench.outbox.take()
    for operation_id in (running, sent):
        bench.pass_time(operation_id)
    assert bench.store.claims.publish_overdue(NEW) == 2
    assert sorted(bench.outbox.take()) == sorted([running, sent])


def test_a_session_that_was_being_created_is_created_by_the_new_worker(bench: Bench) -> None:
    session = bench.store.sessions.create(SPEC, [WORKER])
    (creation,) = bench.outbox.take()
    bench.claim(creation)
    kill_worker(bench)
    assert bench.store.claims.finish(bench.claim(creation, NEW), None)
    assert bench.store.sessions.get(session.id).status is SessionStatus.RUNNING


def test_without_another_worker_the_session_waits_for_one(bench: Bench) -> None:
    session = bench.running_session()
    (step,) = accept(bench, session.id, STEP)
    bench.claim(step)
    bench.redis.zadd("celerity:workers", {WORKER: 1.0})
    bench.store.janitor.move_sessions_of(bench.store.workers.lost())
    assert bench.store.sessions.get(session.id).status is SessionStatus.RUNNING
    bench.beat(NEW)
    bench.store.janitor.move_sessions_of(bench.store.workers.lost())
    assert bench.store.claims.finish(bench.claim(step, NEW), OptimStepResult(step=1, metrics={}))


def test_a_session_that_reaches_a_worker_just_forgotten_moves_on(bench: Bench) -> None:
    session = bench.running_session()
    for gone in ("worker-2", "worker-3"):
        bench.beat(gone)
        assert bench.store.workers.forget(gone)
    created = bench.store.sessions.create(SPEC, ["worker-2"])
    assert bench.store.sessions.move(session.id, WORKER, "worker-3")
    assert bench.store.workers.left() == ["worker-2", "worker-3"]
    assert not bench.store.workers.forget("worker-2"), "it holds something again"
    bench.store.janitor.move_sessions_of(bench.store.workers.left())
    for moved in (session, created):
        assert bench.store.sessions.get(moved.id).worker_id == WORKER
    assert bench.store.workers.left() == []


def test_a_worker_that_leaves_is_not_waited_for(bench: Bench) -> None:
    session = bench.running_session()
    bench.beat(NEW)
    bench.store.workers.leave(WORKER)
    bench.store.janitor.move_sessions_of(bench.store.workers.left())
    assert bench.store.sessions.get(session.id).worker_id == NEW


def test_an_operation_that_kills_every_worker_fails_and_its_session_goes_on(bench: Bench) -> None:
    session = bench.running_session()
    deadly, after = accept(bench, session.id, TRAIN, STEP)
    worker = kill_each_worker_of(bench, session.id, deadly)
    error = bench.store.operations.get(session.id, deadly).error
    assert error is not None
    assert error.code is ErrorCode.INTERNAL_ERROR
    assert "5 times" in error.message
    assert bench.outbox.take() == [after]
    assert bench.claim(after, worker) is not None


def test_an_operation_that_workers_hand_back_as_they_leave_has_killed_none(bench: Bench) -> None:
    session = bench.running_session()
    (moved,) = accept(bench, session.id, TRAIN)
    for number in range(1, 8):
        here, there = f"worker-{number}", f"worker-{number + 1}"
        assert bench.store.claims.claim(moved, here, here, beside_others=True) is not None
        bench.beat(there)
        bench.store.workers.leave(here)
        bench.store.janitor.move_sessions_of([here])
    assert bench.store.operations.get(session.id, moved).status is OperationStatus.PENDING
    assert kill_each_worker_of(bench, session.id, moved, first=8) == "worker-13", "five more, and all of them lost"
    assert bench.store.operations.get(session.id, moved).status is OperationStatus.FAILED


def test_what_was_lost_with_its_workers_stays_a_suspect_when_one_more_leaves(bench: Bench) -> None:
    session = bench.running_session()
    (suspect,) = accept(bench, session.id, TRAIN)
    for here, there in ((WORKER, NEW), (NEW, "worker-3")):
        bench.beat(there)
        assert bench.claim(suspect, here) is not None
        assert bench.store.sessions.move(session.id, here, there)
    assert bench.claim(suspect, "worker-3") is not None
    bench.store.workers.leave("worker-3")
    assert bench.store.sessions.move(session.id, "worker-3", WORKER)
    with pytest.raises(SuspectError):
        bench.store.claims.claim(suspect, WORKER, "beside others", beside_others=True)


def test_what_changed_the_adapter_is_kept_for_replay_until_a_snapshot_covers_it(bench: Bench) -> None:
    session = bench.running_session()
    train, step, sample, spoilt, cleared = accept(bench, session.id, TRAIN, STEP, SAMPLE, TRAIN, STEP)
    bench.run(train)
    claim = bench.claim(step)
    bench.store.claims.finish(claim, OptimStepResult(step=1, metrics={}))
    bench.run(sample)
    bench.run(spoilt, OperationError(ErrorCode.NON_FINITE, "not finite"))
    bench.run(cleared, OperationError(ErrorCode.NON_FINITE, "not finite"))
    kept = bench.store.snapshots.load(session.id)
    assert kept.snapshot is None
    assert [(operation.kind, operation.seq) for operation in kept.replayed] == [(TRAIN, 1), (STEP, 2), (STEP, 5)]
    assert bench.store.snapshots.save(claim, b"the adapter")
    kept = bench.store.snapshots.load(session.id)
    assert kept.snapshot == b"the adapter"
    assert [(operation.kind, operation.seq) for operation in kept.replayed] == [(STEP, 5)]
    assert bench.redis.hexists(f"celerity:operation:{train}", "request") == 0


@pytest.mark.parametrize("is_deleted", [False, True], ids=["the old one is still there", "the old one is gone"])
def test_a_snapshot_is_loaded_with_what_follows_that_one_though_a_later_is_saved_meanwhile(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, is_deleted: bool
) -> None:
    session = bench.running_session()
    claims = []
    for number, operation_id in enumerate(accept(bench, session.id, STEP, STEP), start=1):
        claims.append(bench.claim(operation_id))
        bench.store.claims.finish(claims[-1], OptimStepResult(step=number, metrics={}))
    assert bench.store.snapshots.save(claims[0], b"after step 1")
    get = bench.objects.get

    def get_late(path: str) -> bytes:
        if bench.store.snapshots.save(claims[1], b"after step 2") and is_deleted:
            bench.store.janitor.delete_garbage()
        return get(path)

    monkeypatch.setattr(bench.objects, "get", get_late)
    kept = bench.store.snapshots.load(session.id)
    expected = (b"after step 2", []) if is_deleted else (b"after step 1", [2])
    assert (kept.snapshot, [operation.seq for operation in kept.replayed]) == expected


def test_a_worker_that_lost_the_session_cannot_save_over_its_successor(bench: Bench) -> None:
    session = bench.running_session()
    (step,) = accept(bench, session.id, STEP)
    late = bench.claim(step)
    bench.store.sessions.move(session.id, WORKER, NEW)
    assert not bench.store.snapshots.save(late, b"old")
    new = bench.claim(step, NEW)
    bench.store.claims.finish(new, OptimStepResult(step=1, metrics={}))
    assert bench.store.snapshots.save(new, b"new")
    assert not bench.store.snapshots.save(late, b"old")
    assert bench.store.snapshots.load(session.id).snapshot == b"new"


def test_a_worker_to_which_the_session_came_back_cannot_save_what_it_had_before(bench: Bench) -> None:
    session = bench.running_session()
    (step,) = accept(bench, session.id, STEP)
    late = bench.claim(step)
    bench.store.sessions.move(session.id, WORKER, NEW)
    bench.store.sessions.move(session.id, NEW, WORKER)
    assert not bench.store.snapshots.save(late, b"old")
    new = bench.claim(step)
    bench.store.claims.finish(new, OptimStepResult(step=1, metrics={}))
    assert bench.store.snapshots.save(new, b"new")


@pytest.mark.parametrize("what", ["its end", "its end, and it ran again and failed", "the operation"])
def test_a_snapshot_of_what_redis_has_lost_is_not_taken(bench: Bench, what: str) -> None:
    """After a power loss it came back as it was before, and the worker's snapshot was on its way."""
    session = bench.running_session()
    (step,) = accept(bench, session.id, STEP)
    claim = bench.claim(step)
    if what == "the operation":
        bench.redis.delete(keys.operation(step))
    elif what != "its end":
        bench.redis.hset(keys.operation(step), "state", "READY")
        bench.run(step, OperationError(ErrorCode.TIMEOUT, "too long"))
    assert not bench.store.snapshots.save(claim, b"after step 1")
    assert bench.store.snapshots.load(session.id).snapshot is None


def test_a_snapshot_that_is_saved_again_since_the_reply_was_lost_stays_and_is_one_object(bench: Bench) -> None:
    session = bench.running_session()
    claims = []
    for number, operation_id in enumerate(accept(bench, session.id, STEP, STEP), start=1):
        claims.append(bench.claim(operation_id))
        bench.store.claims.finish(claims[-1], OptimStepResult(step=number, metrics={}))
    for _ in range(2):
        assert bench.store.snapshots.save(claims[0], b"after step 1")
    assert bench.store.sessions.move(session.id, WORKER, NEW)
    assert bench.store.snapshots.save(claims[0], b"after step 1")
    kept = bench.store.snapshots.load(session.id)
    assert kept.snapshot == b"after step 1"
    assert [operation.seq for operation in kept.replayed] == [2]
    assert len([path for path in bench.settings.data_dir.rglob("snapshots/*/*") if path.is_file()]) == 1


def test_a_snapshot_that_cannot_be_noted_leaves_one_object_however_often_it_is_tried(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = bench.running_session()
    (step,) = accept(bench, session.id, STEP)
    claim = bench.claim(step)
    bench.store.claims.finish(claim, OptimStepResult(step=1, metrics={}))
    with monkeypatch.context() as refusing:
        refusing.setattr(bench.store.snapshots._context.scripts, "run", raises_refused)
        for _ in range(3):
            with pytest.raises(RefusedError):
                bench.store.snapshots.save(claim, b"the adapter")
    assert bench.store.snapshots.save(claim, b"the adapter")
    assert len([path for path in bench.settings.data_dir.rglob("snapshots/*/*") if path.is_file()]) == 1


def raises_refused(*_: object, **__: object) -> None:
    raise RefusedError


def test_a_snapshot_that_comes_after_the_session_s_end_leaves_nothing(bench: Bench) -> None:
    session = bench.running_session()
    (step,) = accept(bench, session.id, STEP)
    claim = bench.claim(step)
    bench.store.claims.finish(claim, OptimStepResult(step=1, metrics={}))
    bench.outbox.take()
    bench.store.sessions.stop(session.id)
    bench.run(bench.outbox.take()[0])
    assert not bench.store.snapshots.save(claim, b"late")
    assert [path for path in bench.settings.data_dir.rglob("*") if path.is_file()] == []


def test_a_session_moves_once_however_many_workers_miss_the_lost_one(bench: Bench) -> None:
    session = bench.running_session()
    assert bench.store.sessions.move(session.id, WORKER, NEW)
    assert not bench.store.sessions.move(session.id, WORKER, "worker-3")
    assert bench.store.sessions.get(session.id).worker_id == NEW
    assert bench.store.workers.sessions("worker-3") == set()


def test_a_session_that_has_ended_does_not_move(bench: Bench) -> None:
    session = bench.running_session()
    bench.store.sessions.stop(session.id)
    bench.run(bench.outbox.take()[0])
    assert not bench.store.sessions.move(session.id, WORKER, NEW)
    assert bench.store.workers.sessions(NEW) == set()


def kill_each_worker_of(bench: Bench, session_id: str, operation_id: str, first: int = 1) -> str:
    """As often as an operation may be begun; the worker that holds the session at last."""
    for attempt in range(first, first + 5):
        here, there = f"worker-{attempt}", f"worker-{attempt + 1}"
        bench.beat(there)
        bench.outbox.take()
        assert bench.claim(operation_id, here) is not None
        assert bench.store.sessions.move(session_id, here, there)
    return f"worker-{first + 5}"


def test_a_session_whose_creation_kills_every_worker_ends_in_error(bench: Bench) -> None:
    session = bench.store.sessions.create(SPEC, [WORKER])
    (waiting,) = accept(bench, session.id, STEP)
    kill_each_worker_of(bench, session.id, bench.outbox.take()[0])
    ended = bench.store.sessions.get(session.id)
    assert ended.status is SessionStatus.ERROR
    assert "5 times" in (ended.reason or "")
    error = bench.store.operations.get(session.id, waiting).error
    assert error is not None and error.code is ErrorCode.SESSION_NOT_ACTIVE


def test_a_session_stops_though_each_worker_died_while_it_did(bench: Bench) -> None:
    session = bench.running_session()
    bench.store.sessions.stop(session.id)
    (stop,) = bench.outbox.take()
    last = kill_each_worker_of(bench, session.id, stop)
    assert bench.store.claims.finish(bench.claim(stop, last), None)
    assert bench.store.sessions.get(session.id).status is SessionStatus.STOPPED


@pytest.mark.parametrize("saved", [True, False])
def test_an_ended_session_keeps_nothing_for_recovery(bench: Bench, saved: bool) -> None:
    session = bench.running_session()
    (step,) = accept(bench, session.id, STEP)
    claim = bench.claim(step)
    bench.store.claims.finish(claim, OptimStepResult(step=1, metrics={}))
    bench.outbox.take()
    if saved:
        bench.store.snapshots.save(claim, b"the adapter")
    bench.store.sessions.stop(session.id)
    bench.run(bench.outbox.take()[0])
    bench.store.janitor.delete_garbage()
    assert bench.store.snapshots.load(session.id) == Kept(None, False, [], claim.fence)
    assert [path for path in bench.settings.data_dir.rglob("*") if path.is_file()] == []
    assert bench.store.operations.get(session.id, step).status is OperationStatus.COMPLETED


def test_what_the_store_alone_believes_to_be_running_is_started_again(bench: Bench) -> None:
    session = bench.running_session()
    (step,) = accept(bench, session.id, STEP)
    lost_operations = LostOperations(bench.store, WORKER)
    lost_operations.began(step)
    claim = bench.claim(step)
    lost_operations.began(step)  # a duplicate of its message comes and goes
    lost_operations.ended(step)
    bench.outbox.take()
    for _ in range(3):
        lost_operations.sweep()
    assert bench.outbox.take() == [], "it is running here"
    lost_operations.ended(step)
    lost_operations.sweep()
    assert bench.outbox.take() == [], "its end may be on the way"
    lost_operations.sweep()
    assert bench.outbox.take() == [step]
    assert not bench.store.claims.finish(claim, OptimStepResult(step=1, metrics={}))
    assert bench.claim(step).epoch == claim.epoch + 1
