"""An operation takes effect once, whatever is delivered twice or comes late."""

from functools import partial
from typing import Any

import pytest

from domain.api_key import ANONYMOUS
from domain.operation import ErrorCode, OperationError, OperationKind, OperationStatus
from domain.optim_step import OptimStepRequest, OptimStepResult
from domain.redis_url import RedisUrl
from store.claims import SuspectError
from store.dispatch import Dispatcher, Released, producer
from store.store import Store
from tests.store.conftest import SPEC, WORKER, Bench, with_settings

STEP = OperationKind.OPTIM_STEP


def accepted_step(bench: Bench) -> tuple[str, str]:
    session = bench.running_session()
    return session.id, bench.store.operations.accept(session.id, STEP, OptimStepRequest()).id


def test_a_message_delivered_twice_is_claimed_once(bench: Bench) -> None:
    _, step = accepted_step(bench)
    assert bench.claim(step) is not None
    assert bench.claim(step) is None


def test_a_message_that_comes_after_the_end_does_nothing(bench: Bench) -> None:
    session_id, step = accepted_step(bench)
    bench.run(step, OptimStepResult(step=1, metrics={}))
    assert bench.claim(step) is None
    assert bench.store.sessions.get(session_id).step == 1


def test_an_operation_whose_turn_has_not_come_cannot_be_claimed(bench: Bench) -> None:
    session_id, _ = accepted_step(bench)
    second = bench.store.operations.accept(session_id, STEP, OptimStepRequest()).id
    assert bench.claim(second) is None


def test_a_worker_that_does_not_hold_the_session_cannot_claim(bench: Bench) -> None:
    _, step = accepted_step(bench)
    assert bench.claim(step, "another worker") is None
    assert bench.claim("no such operation") is None


def test_claiming_again_after_a_lost_reply_gives_the_same_claim(bench: Bench) -> None:
    _, step = accepted_step(bench)
    first = bench.store.claims.claim(step, WORKER, "fence")
    assert bench.store.claims.claim(step, WORKER, "fence") == first


def test_finishing_again_after_a_lost_reply_is_no_refusal_and_counts_once(bench: Bench) -> None:
    session_id, step = accepted_step(bench)
    claim = bench.claim(step)
    assert bench.store.claims.finish(claim, OptimStepResult(step=1, metrics={}))
    assert bench.store.claims.finish(claim, OptimStepResult(step=1, metrics={}))
    assert bench.store.counters().counter("ended")["optim-step", "COMPLETED"] == 1
    assert bench.store.sessions.get(session_id).step == 1


def test_what_comes_after_a_timeout_changes_nothing(bench: Bench) -> None:
    session_id, step = accepted_step(bench)
    following = bench.store.operations.accept(session_id, STEP, OptimStepRequest()).id
    claim = bench.claim(step)
    error = OperationError(ErrorCode.TIMEOUT, "it took too long")
    assert bench.store.claims.finish(claim, error)
    assert bench.outbox.take()[-1] == following
    bench.store.claims.finish(claim, OptimStepResult(step=1, metrics={}))
    ended = bench.store.operations.get(session_id, step)
    assert (ended.status, ended.error) == (OperationStatus.FAILED, error)
    assert bench.store.sessions.get(session_id).step == 0
    assert bench.store.snapshots.load(session_id).replayed == []
    assert bench.outbox.take() == []
    counts = bench.store.counters()
    assert counts.counter("ended") == {("create-session", "COMPLETED"): 1, ("optim-step", "FAILED"): 1}
    assert counts.counter("failed") == {("optim-step", "TIMEOUT"): 1}


def test_how_long_an_operation_may_run_is_its_own_or_else_the_settings(bench: Bench) -> None:
    session_id, step = accepted_step(bench)
    own = bench.store.operations.accept(session_id, STEP, OptimStepRequest(), timeout_seconds=0.125).id
    settings = with_settings(bench, optim_step_timeout=30.0)
    first = settings.claims.claim(step, WORKER, "one")
    assert first and first.timeout_seconds == 30.0
    settings.claims.finish(first, None)
    second = settings.claims.claim(own, WORKER, "two")
    assert second and second.timeout_seconds == 0.125
    session = bench.store.sessions.create(SPEC, [WORKER], timeout_seconds=7.5)
    assert bench.claim(bench.outbox.take()[-1]).timeout_seconds == 7.5
    bench.store.sessions.stop(session.id)


def test_a_late_worker_is_refused_and_changes_nothing(bench: Bench) -> None:
    session_id, step = accepted_step(bench)
    late = bench.claim(step)
    bench.beat("worker-2")
    assert bench.store.sessions.move(session_id, WORKER, "worker-2")
    assert not bench.store.claims.finish(late, OptimStepResult(step=1, metrics={}))
    assert bench.claim(step) is None
    assert bench.store.operations.get(session_id, step).status is OperationStatus.PENDING
    assert bench.store.sessions.get(session_id).step == 0
    second = bench.claim(step, "worker-2")
    assert second.epoch == late.epoch + 1
    assert not bench.store.claims.finish(late, OptimStepResult(step=1, metrics={})), "it runs elsewhere by now"
    assert bench.store.operations.get(session_id, step).status is OperationStatus.RUNNING
    assert bench.store.claims.finish(second, OptimStepResult(step=1, metrics={}))
    assert not bench.store.claims.finish(late, OptimStepResult(step=1, metrics={}))
    assert bench.store.sessions.get(session_id).step == 1


def test_an_overdue_operation_is_published_again_by_its_own_worker(bench: Bench) -> None:
    _, step = accepted_step(bench)
    bench.outbox.take()
    assert bench.store.claims.publish_overdue(WORKER) == 0
    bench.pass_time(step)
    assert bench.store.claims.publish_overdue("another worker") == 0
    assert bench.store.claims.publish_overdue(WORKER) == 1
    assert bench.store.claims.publish_overdue(WORKER) == 0, "this one has its time too"
    assert bench.outbox.take() == [step]
    bench.claim(step)
    assert bench.redis.zcard("celerity:due") == 0


def test_what_is_overdue_and_was_forgotten_meanwhile_is_due_no_more(bench: Bench) -> None:
    bench.redis.zadd("celerity:due", {"forgotten": 1.0})
    assert bench.store.claims.publish_overdue(WORKER) == 0
    assert bench.redis.zcard("celerity:due") == 0


def test_a_script_that_the_client_library_sends_again_after_a_lost_reply_acts_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = bench.store.sessions._context.scripts.run

    def run_twice(script: str, *rest: Any, **arguments: Any) -> Any:
        run(script, *rest, **arguments)
        return run(script, *rest, **arguments)

    monkeypatch.setattr(bench.store.sessions._context.scripts, "run", run_twice)
    session = bench.store.sessions.create(SPEC, [WORKER])
    step = bench.store.operations.accept(session.id, STEP, OptimStepRequest())
    assert [each.id for each in bench.store.sessions.list(ANONYMOUS, None, 20, 0)] == [session.id]
    assert bench.store.operations.list(session.id, 20, 0) == [step]
    assert step.seq == 1, "the creation was 0"
    assert bench.redis.zcard(f"celerity:session:{session.id}:queue") == 2
    assert bench.outbox.take() == [], "what the first reply released is left to the sweeper"
    assert bench.redis.zcard("celerity:due") == 1


def test_what_was_accepted_while_no_message_could_be_sent_is_published_later(bench: Bench) -> None:
    session = bench.running_session()
    cut_off = Store(
        bench.redis, bench.objects, Dispatcher(producer(RedisUrl(host="127.0.0.1", port=1))), bench.settings
    )
    step = cut_off.operations.accept(session.id, STEP, OptimStepRequest()).id
    assert bench.outbox.take() == []
    bench.pass_time(step)
    bench.store.claims.publish_overdue(WORKER)
    assert bench.outbox.take() == [step]


def test_what_died_with_half_its_workers_is_not_begun_beside_others(bench: Bench) -> None:
    session = bench.running_session()
    step = bench.store.operations.accept(session.id, STEP, OptimStepRequest()).id
    claim = partial(bench.store.claims.claim, step, WORKER, beside_others=True)
    assert claim("once") is not None
    bench.store.sessions.move(session.id, WORKER, WORKER)
    assert claim("twice") == claim("twice") is not None, "asked again, for its answer was lost"
    bench.store.sessions.move(session.id, WORKER, WORKER)
    for fence in ("three times", "four times"):
        with pytest.raises(SuspectError):
            claim(fence)
    assert bench.store.operations.get(session.id, step).status is OperationStatus.PENDING
    assert bench.store.claims.claim(step, WORKER, "alone") is not None


def test_when_one_message_cannot_be_sent_the_others_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    celery, tried = producer(RedisUrl(host="127.0.0.1", port=1)), list[str]()
    send_task = celery.send_task

    def send(name: str, **options: Any) -> Any:
        tried.append(options["task_id"])
        return send_task(name, **options)

    monkeypatch.setattr(celery, "send_task", send)
    Dispatcher(celery).publish([Released(id, STEP, WORKER, "") for id in ("one", "two", "three")])
    assert tried == ["one"]


def test_when_a_client_first_reads_a_result_is_kept_and_a_look_is_no_reading(bench: Bench) -> None:
    session_id, step = accepted_step(bench)
    bench.run(step, OptimStepResult(step=1, metrics={}))
    operations = bench.store.operations
    looked = operations.result(operations.get(session_id, step), OptimStepResult)
    assert operations.get(session_id, step).read_at is None
    assert operations.answer(operations.get(session_id, step), OptimStepResult) == looked
    first = operations.get(session_id, step)
    assert first.ended_at and first.read_at and first.read_at >= first.ended_at
    operations.answer(first, OptimStepResult)
    assert operations.get(session_id, step).read_at == first.read_at


def test_the_upload_of_a_request_is_kept_with_it(bench: Bench) -> None:
    session = bench.running_session()
    accepted = bench.store.operations.accept(session.id, STEP, OptimStepRequest(), uploaded_in=2.5)
    assert (accepted.uploaded_in, bench.store.operations.get(session.id, accepted.id).uploaded_in) == (2.5, 2.5)


def test_a_claim_says_which_operation_changed_the_adapter_last(bench: Bench) -> None:
    """What failed before it changed anything is none of these, and neither is what only reads."""
    session = bench.running_session()
    kinds = (OperationKind.FORWARD_BACKWARD, OperationKind.SAMPLE, OperationKind.OPTIM_STEP, OperationKind.OPTIM_STEP)
    ids = [bench.store.operations.accept(session.id, kind, OptimStepRequest()).id for kind in kinds]
    refused, not_finite = (OperationError(code, "no") for code in (ErrorCode.INVALID_INPUT, ErrorCode.NON_FINITE))
    claims = []
    for operation_id, outcome in zip(ids, (None, None, refused, not_finite), strict=True):
        claims.append(bench.claim(operation_id))
        assert bench.store.claims.finish(claims[-1], outcome)
    assert [claim.last_change for claim in claims] == ["", *[claims[0].fence] * 3]
    assert bench.store.snapshots.load(session.id).last_change == claims[-1].fence
