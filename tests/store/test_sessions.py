"""Sessions live, stop, are lost with their worker, and go when their time is over."""

from dataclasses import dataclass

import msgspec
import pytest

from domain.api_key import ANONYMOUS
from domain.operation import ErrorCode, OperationError, OperationKind, OperationStatus
from domain.optim_step import OptimStepRequest, OptimStepResult
from domain.session import LoraConfig, Session, SessionSpec, SessionStatus
from store.errors import NoRoomError, NotCancellableError, NotFoundError, SessionNotActiveError
from store.janitor import IDLE
from store.workers import needed
from tests.store.conftest import CARD, SPEC, WORKER, Bench, announcement, with_settings

STEP = OperationKind.OPTIM_STEP


@dataclass
class Accepted:
    session_id: str
    running: str
    waiting: str


def busy(bench: Bench) -> Accepted:
    """A session with one operation running and one waiting."""
    session = bench.running_session()
    running, waiting = (bench.store.operations.accept(session.id, STEP, OptimStepRequest()).id for _ in range(2))
    bench.outbox.take()
    return Accepted(session.id, running, waiting)


def test_stopping_lets_the_running_operation_finish_and_fails_the_waiting_ones(bench: Bench) -> None:
    accepted = busy(bench)
    claim = bench.claim(accepted.running)
    assert bench.store.sessions.stop(accepted.session_id).status is SessionStatus.STOPPING
    assert bench.store.sessions.stop(accepted.session_id).status is SessionStatus.STOPPING
    waiting = bench.store.operations.get(accepted.session_id, accepted.waiting)
    assert waiting.error is not None
    assert waiting.error.code is ErrorCode.SESSION_NOT_ACTIVE
    with pytest.raises(SessionNotActiveError, match="STOPPING"):
        bench.store.operations.accept(accepted.session_id, STEP, OptimStepRequest())
    bench.store.claims.finish(claim, OptimStepResult(step=1, metrics={}))
    (stop,) = bench.outbox.take()
    bench.run(stop)
    session = bench.store.sessions.get(accepted.session_id)
    assert (session.status, session.step, session.reason) == (SessionStatus.STOPPED, 1, None)
    assert bench.store.workers.sessions(WORKER) == set()
    running = bench.store.operations.get(accepted.session_id, accepted.running)
    assert bench.store.operations.result(running, OptimStepResult).step == 1


def test_a_session_whose_creation_fails_ends_in_error_with_the_reason(bench: Bench) -> None:
    session = bench.store.sessions.create(SPEC, [WORKER])
    waiting = bench.store.operations.accept(session.id, STEP, OptimStepRequest())
    bench.run(bench.outbox.take()[0], OperationError(ErrorCode.INVALID_INPUT, "no such weights"))
    ended = bench.store.sessions.get(session.id)
    assert (ended.status, ended.reason) == (SessionStatus.ERROR, "no such weights")
    assert bench.store.operations.get(session.id, waiting.id).status is OperationStatus.FAILED


def test_lists_are_newest_first_by_page_and_by_status(bench: Bench) -> None:
    sessions = [bench.running_session() for _ in range(3)]
    bench.store.sessions.stop(sessions[1].id)
    newest = [session.id for session in reversed(sessions)]
    listed = bench.store.sessions.list
    assert [session.id for session in listed(ANONYMOUS, None, 20, 0)] == newest
    assert [session.id for session in listed(ANONYMOUS, None, 1, 1)] == newest[1:2]
    assert [session.id for session in listed(ANONYMOUS, SessionStatus.RUNNING, 20, 0)] == [newest[0], newest[2]]
    assert [session.id for session in listed(ANONYMOUS, SessionStatus.STOPPING, 20, 0)] == [newest[1]]


def test_cancelling_ends_only_what_has_not_begun(bench: Bench) -> None:
    accepted = busy(bench)
    bench.claim(accepted.running)
    with pytest.raises(NotCancellableError):
        bench.store.operations.cancel(accepted.session_id, accepted.running)
    error = bench.store.operations.cancel(accepted.session_id, accepted.waiting).error
    assert error is not None
    assert error.code is ErrorCode.CANCELLED
    with pytest.raises(NotFoundError):
        bench.store.operations.cancel("another session", accepted.running)


def test_what_was_cancelled_while_it_was_sent_is_sent_no_more_and_what_it_held_up_is(bench: Bench) -> None:
    session = bench.running_session()
    first, second = (bench.store.operations.accept(session.id, STEP, OptimStepRequest()).id for _ in range(2))
    assert bench.outbox.take() == [first]
    bench.store.operations.cancel(session.id, first)
    assert bench.outbox.take() == [second]
    for operation_id in (first, second):
        bench.pass_time(operation_id)
    bench.store.claims.publish_overdue(WORKER)
    assert bench.outbox.take() == [second]


def test_an_ended_session_is_removed_whole_when_its_retention_is_over(bench: Bench) -> None:
    keys_before = bench.redis.dbsize()
    session = bench.running_session()
    operation = bench.store.operations.accept(session.id, STEP, OptimStepRequest())
    bench.run(operation.id, OptimStepResult(step=1, metrics={}))
    bench.outbox.take()
    bench.store.sessions.stop(session.id)
    bench.run(bench.outbox.take()[0])
    bench.store.janitor.sweep()
    assert bench.store.sessions.get(session.id).status is SessionStatus.STOPPED
    with_settings(bench, session_retention=-1.0).janitor.sweep()
    with pytest.raises(NotFoundError):
        bench.store.sessions.get(session.id)
    with pytest.raises(NotFoundError):
        bench.store.operations.get(session.id, operation.id)
    lasting = {key for key in bench.redis.scan_iter() if bench.redis.ttl(key) == -1}
    assert len(lasting) == keys_before + 1, "only the counters are new"


def test_results_beyond_the_kept_ones_go_when_they_are_old_and_say_so(bench: Bench) -> None:
    session = bench.running_session()
    operations = [bench.store.operations.accept(session.id, STEP, OptimStepRequest()) for _ in range(3)]
    for number, operation in enumerate(operations, start=1):
        bench.run(operation.id, OptimStepResult(step=number, metrics={}))
    with_settings(bench, results_kept=1, result_retention=60.0).janitor.expire_results()
    assert bench.store.operations.get(session.id, operations[0].id).status is OperationStatus.COMPLETED
    with_settings(bench, results_kept=1, result_retention=-1.0).janitor.expire_results()
    for operation in operations[:2]:
        with pytest.raises(NotFoundError, match="older than results are kept"):
            bench.store.operations.get(session.id, operation.id)
    newest = bench.store.operations.get(session.id, operations[2].id)
    assert bench.store.operations.result(newest, OptimStepResult).step == 3


def test_what_has_expired_leaves_nothing_in_redis_unless_a_replay_needs_it(bench: Bench) -> None:
    session, expiring = bench.running_session(), with_settings(bench, results_kept=1, result_retention=-1.0)
    bench.run(accepted_step(bench, session), OptimStepResult(step=1, metrics={}))
    covering = bench.claim(accepted_step(bench, session))
    bench.store.claims.finish(covering, OptimStepResult(step=2, metrics={}))
    assert bench.store.snapshots.save(covering, b"the adapter")
    keys_before = set(bench.redis.scan_iter())
    bench.run(accepted_step(bench, session), OperationError(ErrorCode.INVALID_INPUT, "nothing accumulated"))
    bench.run(accepted_step(bench, session), OptimStepResult(step=3, metrics={}))
    last = bench.claim(accepted_step(bench, session))
    bench.store.claims.finish(last, OptimStepResult(step=4, metrics={}))
    expiring.janitor.expire_results()
    kept = bench.store.snapshots.load(session.id)
    assert [operation.seq for operation in kept.replayed] == [4, 5], "what the snapshot does not cover"
    assert bench.store.snapshots.save(last, b"the adapter")
    operations = {key for key in bench.redis.scan_iter("celerity:operation:*") if bench.redis.ttl(key) == -1}
    assert operations == {f"celerity:operation:{last.operation_id}".encode()}
    assert [operation.id for operation in bench.store.operations.list(session.id, 20, 0)] == [last.operation_id]
    assert len(set(bench.redis.scan_iter()) - keys_before) <= 2


def accepted_step(bench: Bench, session: Session) -> str:
    operation = bench.store.operations.accept(session.id, STEP, OptimStepRequest())
    return operation.id


def test_an_idle_session_is_stopped_with_that_reason_and_a_busy_one_is_not(bench: Bench) -> None:
    idle, accepted = bench.running_session(), busy(bench)
    with_settings(bench, idle_timeout=3600.0).janitor.stop_idle_sessions()
    assert bench.store.sessions.get(idle.id).status is SessionStatus.RUNNING
    with_settings(bench, idle_timeout=-1.0).janitor.stop_idle_sessions()
    stopped = bench.store.sessions.get(idle.id)
    assert (stopped.status, stopped.reason) == (SessionStatus.STOPPING, IDLE)
    assert bench.store.sessions.get(accepted.session_id).status is SessionStatus.RUNNING


def test_a_new_session_goes_to_the_live_worker_with_most_room(bench: Bench) -> None:
    bench.running_session()
    bench.beat("worker-2")
    assert bench.store.workers.candidates(SPEC) == ["worker-2", WORKER]
    bench.store.workers.beat("worker-2", announcement(capacity=50))
    assert bench.store.workers.candidates(SPEC) == [WORKER, "worker-2"]
    bench.redis.zadd("celerity:workers", {WORKER: 1.0})
    assert bench.store.workers.candidates(SPEC) == ["worker-2"]
    bench.redis.zadd("celerity:workers", {"worker-2": 1.0})
    assert bench.store.workers.candidates(SPEC) == []


def test_of_workers_with_room_for_as_many_the_one_with_most_free_memory_is_best(bench: Bench) -> None:
    for worker_id, free_bytes in (("a", 2 << 30), ("b", 3 << 30), ("c", 1 << 30)):
        bench.store.workers.beat(worker_id, announcement(capacity=200, free_bytes=free_bytes))
    assert bench.store.workers.candidates(SPEC) == ["b", "a", "c", WORKER]


def test_only_workers_that_serve_the_model_are_asked_and_all_for_one_that_none_has_at_hand(bench: Bench) -> None:
    other = msgspec.structs.replace(CARD, name="org/other")
    bench.store.workers.beat("other", msgspec.structs.replace(announcement(capacity=200), models=(other,)))
    assert bench.store.workers.candidates(SPEC) == [WORKER]
    assert bench.store.workers.candidates(msgspec.structs.replace(SPEC, base_model=other)) == ["other"]
    of_hub = msgspec.structs.replace(SPEC, base_model=msgspec.structs.replace(CARD, name="hub/model"))
    assert bench.store.workers.candidates(of_hub) == ["other", WORKER]


def create(bench: Bench, spec: SessionSpec = SPEC, *workers: str) -> str:
    """The worker that took the session."""
    return bench.store.sessions.create(spec, workers or [WORKER]).worker_id


@pytest.mark.parametrize("sizes", [{"capacity": 1}, {"free_bytes": 1000}], ids=["sessions", "memory"])
def test_a_full_worker_takes_no_new_session_and_the_next_best_does(bench: Bench, sizes: dict[str, int]) -> None:
    bench.running_session()
    bench.store.workers.beat(WORKER, announcement(**sizes))
    with pytest.raises(NoRoomError, match="full"):
        create(bench)
    bench.beat("worker-2")
    assert create(bench, SPEC, WORKER, "worker-2") == "worker-2"


def test_what_was_accepted_is_adopted_by_a_worker_that_is_full(bench: Bench) -> None:
    session = bench.running_session()
    bench.store.workers.beat("worker-2", announcement(capacity=0))
    bench.store.workers.leave(WORKER)
    bench.store.janitor.move_sessions_of(bench.store.workers.left())
    assert bench.store.sessions.get(session.id).worker_id == "worker-2"


def test_of_those_who_saw_the_same_last_room_one_gets_it(bench: Bench) -> None:
    bench.store.workers.beat(WORKER, announcement(capacity=1))
    seen = [bench.store.workers.candidates(SPEC) for _ in range(2)]
    assert create(bench, SPEC, *seen[0]) == WORKER
    with pytest.raises(NoRoomError):
        create(bench, SPEC, *seen[1])


def test_a_worker_has_room_for_what_fits_beside_the_sessions_that_are_being_created(bench: Bench) -> None:
    wide = msgspec.structs.replace(CARD, adapter_width=1000)
    spec = msgspec.structs.replace(SPEC, base_model=wide, lora=LoraConfig(rank=256))
    size = 256 * 1000 * 4 * 4  # weights, gradients and two moments of four bytes each
    reserved, alone = announcement().reserved_bytes, needed(size)
    bench.store.workers.beat(WORKER, announcement(free_bytes=reserved + alone + size - 1))
    assert create(bench, spec) == WORKER
    with pytest.raises(NoRoomError):
        create(bench, spec)
    bench.run(bench.outbox.take()[0])
    assert create(bench) == WORKER, "a small one fits"
    bench.store.workers.beat(WORKER, announcement(free_bytes=reserved + alone - size, resident_bytes=size))
    assert create(bench, spec) == WORKER, "the one that is there can be parked"
    bench.run(bench.outbox.take()[-1])
    bench.store.workers.beat(WORKER, announcement(free_bytes=reserved + alone - size - 1, resident_bytes=size))
    with pytest.raises(NoRoomError):
        create(bench, spec)


def test_what_another_worker_is_yet_to_create_takes_no_room_here(bench: Bench) -> None:
    wide = msgspec.structs.replace(SPEC, base_model=msgspec.structs.replace(CARD, adapter_width=1000))
    room = announcement().reserved_bytes + needed(wide.adapter_bytes)
    for worker_id in (WORKER, "worker-2"):
        bench.store.workers.beat(worker_id, announcement(free_bytes=room))
        assert create(bench, wide, worker_id) == worker_id
