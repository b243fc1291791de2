"""What an owner has and may have: its own lists, and limits that hold whoever asks at once."""

from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from domain.api_key import KeyLimits
from domain.operation import OperationKind
from domain.optim_step import OptimStepRequest, OptimStepResult
from domain.session import Session, SessionStatus
from store.errors import LimitReachedError, NotFoundError
from store.idempotency import IdempotencyKey
from tests.store.conftest import SPEC, WORKER, Bench, with_settings

STEP = OperationKind.OPTIM_STEP


def owner(bench: Bench, limits: KeyLimits) -> str:
    return bench.store.api_keys.create("somebody", limits)[0].id


def create(bench: Bench, owner: str, idempotency_key: IdempotencyKey | None = None) -> Session:
    return bench.store.sessions.create(msgspec.structs.replace(SPEC, owner=owner), [WORKER], idempotency_key)


def step(bench: Bench, session: Session) -> str:
    return bench.store.operations.accept(session.id, STEP, OptimStepRequest()).id


def test_a_session_is_listed_and_found_by_its_owner_alone(bench: Bench) -> None:
    mine, theirs = [create(bench, "me") for _ in range(2)], create(bench, "they")
    assert mine[0].owner == "me"
    listed = bench.store.sessions.list
    assert [session.id for session in listed("me", None, 20, 0)] == [mine[1].id, mine[0].id]
    assert [session.id for session in listed("they", SessionStatus.CREATING, 20, 0)] == [theirs.id]
    assert listed("nobody", None, 20, 0) == []
    assert bench.store.sessions.get(theirs.id, "they").id == theirs.id
    with pytest.raises(NotFoundError) as anothers:
        bench.store.sessions.get(theirs.id, "me")
    with pytest.raises(NotFoundError) as nobodys:
        bench.store.sessions.get("no session", "me")
    assert str(anothers.value) == str(nobodys.value)


def test_as_many_sessions_as_an_owner_may_have_until_one_has_ended(bench: Bench) -> None:
    limited = owner(bench, KeyLimits(max_sessions=2))
    first, _ = create(bench, limited), create(bench, limited)
    with pytest.raises(LimitReachedError, match="2 sessions of this API key"):
        create(bench, limited)
    create(bench, "another")
    bench.store.sessions.stop(first.id)
    with pytest.raises(LimitReachedError):
        create(bench, limited)
    while bench.store.sessions.get(first.id).status is not SessionStatus.STOPPED:
        for operation_id in bench.outbox.take():
            bench.run(operation_id)
    create(bench, limited)


def test_ten_at_once_make_as_many_sessions_as_the_owner_may_have(bench: Bench) -> None:
    limited = owner(bench, KeyLimits(max_sessions=3))

    def attempt(_: int) -> bool:
        try:
            create(bench, limited)
        except LimitReachedError:
            return False
        return True

    with ThreadPoolExecutor(10) as pool:
        assert sum(pool.map(attempt, range(10))) == 3
    assert len(bench.store.sessions.list(limited, None, 20, 0)) == 3


def test_a_repeat_under_an_idempotency_key_is_no_session_more(bench: Bench) -> None:
    limited, once = owner(bench, KeyLimits(max_sessions=1)), IdempotencyKey("scope", "key", b"digest")
    assert create(bench, limited, once).id == create(bench, limited, once).id


def test_waiting_operations_count_over_all_sessions_of_an_owner(bench: Bench) -> None:
    limited = owner(bench, KeyLimits(max_waiting=2))
    one, two, another = create(bench, limited), create(bench, limited), create(bench, "another")
    step(bench, one)
    step(bench, two)
    with pytest.raises(LimitReachedError, match="2 operations of this API key"):
        step(bench, one)
    step(bench, another)


def test_an_operation_counts_until_it_ends_whichever_way(bench: Bench) -> None:
    limited = owner(bench, KeyLimits(max_waiting=1))
    one, two = create(bench, limited), create(bench, limited)
    for creation in bench.outbox.take():
        bench.run(creation)
    bench.run(step(bench, one), OptimStepResult(step=1, metrics={}))
    bench.store.operations.cancel(one.id, step(bench, one))
    step(bench, one)
    bench.store.sessions.stop(one.id)
    step(bench, two)
    with pytest.raises(LimitReachedError):
        step(bench, two)


def test_the_servers_limits_hold_for_a_key_without_its_own(bench: Bench) -> None:
    bench.store = with_settings(bench, max_sessions_per_key=1, max_waiting_per_key=1)
    session = create(bench, owner(bench, KeyLimits()))
    step(bench, session)
    for refused in (lambda: create(bench, session.owner), lambda: step(bench, session)):
        with pytest.raises(LimitReachedError):
            refused()
    unlimited = owner(bench, KeyLimits(max_sessions=0, max_waiting=0))
    for theirs in (create(bench, unlimited), create(bench, unlimited)):
        step(bench, theirs)
