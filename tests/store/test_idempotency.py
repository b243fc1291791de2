"""An Idempotency-Key has one effect, however often and however concurrently it comes."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from domain.operation import OperationKind
from domain.optim_step import OptimStepRequest
from store.errors import KeyReusedError, NotFoundError
from store.idempotency import IdempotencyKey
from tests.store.conftest import SPEC, WORKER, Bench, with_settings

ONCE = IdempotencyKey("anonymous:/path", "key", b"digest")


def test_ten_concurrent_duplicates_are_one_operation(bench: Bench) -> None:
    session = bench.running_session()

    def accept(_: int) -> str:
        return bench.store.operations.accept(session.id, OperationKind.OPTIM_STEP, OptimStepRequest(), ONCE).id

    with ThreadPoolExecutor(10) as pool:
        ids = set(pool.map(accept, range(10)))
    assert len(ids) == 1
    assert len(bench.store.operations.list(session.id, 100, 0)) == 1


def test_a_key_with_another_body_is_refused(bench: Bench) -> None:
    bench.store.sessions.create(SPEC, [WORKER], ONCE)
    with pytest.raises(KeyReusedError):
        bench.store.sessions.create(SPEC, [WORKER], IdempotencyKey(ONCE.scope, ONCE.key, b"another"))
    with pytest.raises(KeyReusedError):
        bench.store.idempotency.recall(IdempotencyKey(ONCE.scope, ONCE.key, b"another"))


def test_a_key_counts_within_its_scope_only(bench: Bench) -> None:
    first = bench.store.sessions.create(SPEC, [WORKER], ONCE)
    assert bench.store.sessions.create(SPEC, [WORKER], IdempotencyKey("other:/path", ONCE.key, b"x")).id != first.id
    assert bench.store.sessions.create(SPEC, [WORKER], ONCE).id == first.id


def test_the_first_answer_is_the_one_that_is_kept(bench: Bench) -> None:
    session = bench.running_session()
    assert bench.store.idempotency.recall(ONCE) is None
    assert bench.store.idempotency.remember(ONCE, session.id, b"first") == b"first"
    assert bench.store.idempotency.remember(ONCE, session.id, b"second") == b"first"
    assert bench.store.idempotency.recall(ONCE) == b"first"


def test_a_key_lives_as_long_as_its_session_and_a_day_after_it_was_removed(bench: Bench) -> None:
    session = bench.store.sessions.create(SPEC, [WORKER], ONCE)
    bench.store.idempotency.remember(ONCE, session.id, b"first")
    assert bench.redis.ttl(ONCE.redis_key) == -1, "for ever, so far"
    bench.run(bench.outbox.take()[0])
    bench.store.sessions.stop(session.id)
    bench.run(bench.outbox.take()[0])
    with_settings(bench, session_retention=-1.0).janitor.sweep()
    with pytest.raises(NotFoundError):
        bench.store.sessions.get(session.id)
    assert bench.store.idempotency.recall(ONCE) == b"first"
    assert 86_000 < bench.redis.ttl(ONCE.redis_key) <= 86_400
