"""Model resources in the store: what keeps them, what expires with them, what a dying process leaves."""

import msgspec
import pytest

from domain.model_resources import ModelResources, ModelResourcesSpec, ModelResourcesStatus
from domain.operation import ErrorCode, OperationError, OperationKind
from domain.optim_step import OptimStepResult
from domain.session import Session, SessionStatus
from domain.weights_sync import WeightsSyncRequest, WeightsSyncResult
from store.errors import NotFoundError, ResourcesStoppedError
from store.idempotency import IdempotencyKey, idempotency_arguments
from tests.store.conftest import SPEC, WORKER, Bench, with_settings

TIMEOUT = 300


def made(bench: Bench) -> ModelResources:
    spec = ModelResourcesSpec(base_model="m", owner=SPEC.owner, inactive_timeout=TIMEOUT, generator_replicas=1)
    return bench.store.model_resources.create(spec)


def attached(bench: Bench, resources: ModelResources) -> Session:
    spec = msgspec.structs.replace(SPEC, resources_id=resources.id, publishes=True)
    session = bench.store.sessions.create(spec, [WORKER])
    bench.run(bench.outbox.take()[0])
    return session


def age(bench: Bench, seconds: float, *keys: str) -> None:
    """Sets the times of records back."""
    for key in keys:
        for field in ("created_at", "updated_at"):
            bench.redis.hincrbyfloat(f"celerity:{key}", field, -seconds)


def statuses(bench: Bench, resources: ModelResources, session: Session) -> tuple[str, str]:
    found = bench.store.model_resources.get(resources.id, SPEC.owner)
    return found.status.value, bench.store.sessions.get(session.id).status.value


def test_many_are_listed_in_a_few_round_trips(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each knows when its own sessions last used it."""
    three = [made(bench) for _ in range(3)]
    session = attached(bench, three[1])
    for resources in three:
        age(bench, 100, f"resources:{resources.id}")
    last_used = bench.store.sessions.get(session.id).updated_at
    monkeypatch.setattr(bench.redis, "hmget", None)  # all are read through pipelines
    newest = list(bench.store.model_resources.newest(SPEC.owner))
    assert {each.id for each in newest} == {each.id for each in three}
    expires_at = {each.id: each.expires_at for each in newest}
    assert expires_at[three[1].id] == last_used + TIMEOUT
    assert expires_at[three[0].id] == three[0].created_at - 100 + TIMEOUT


def test_inactive_resources_expire_with_their_sessions(bench: Bench) -> None:
    resources = made(bench)
    session = attached(bench, resources)
    age(bench, TIMEOUT - 5, f"resources:{resources.id}", f"session:{session.id}")
    bench.store.model_resources.sweep()
    assert statuses(bench, resources, session) == ("READY", "RUNNING")
    age(bench, 10, f"resources:{resources.id}", f"session:{session.id}")
    bench.store.model_resources.sweep()
    assert statuses(bench, resources, session) == ("STOPPED", "STOPPING")
    bench.run(bench.outbox.take()[0])
    assert bench.store.sessions.get(session.id).status is SessionStatus.EXPIRED


def test_an_operation_and_an_extension_keep_them(bench: Bench) -> None:
    resources = made(bench)
    session = attached(bench, resources)
    operation = bench.store.operations.accept(session.id, OperationKind.WEIGHTS_SYNC, WeightsSyncRequest())
    age(bench, 2 * TIMEOUT, f"resources:{resources.id}", f"session:{session.id}")
    bench.store.model_resources.sweep()
    assert statuses(bench, resources, session) == ("READY", "RUNNING")
    bench.run(operation.id, WeightsSyncResult(step=4))
    assert bench.store.sessions.get(session.id).published_step == 4
    bench.store.model_resources.extend(resources.id, 60)
    age(bench, 2 * TIMEOUT, f"resources:{resources.id}", f"session:{session.id}")
    bench.store.model_resources.sweep()
    assert statuses(bench, resources, session) == ("READY", "RUNNING")


def test_stopped_resources_take_no_session_and_stop_only_once(bench: Bench) -> None:
    resources = made(bench)
    session = attached(bench, resources)
    with pytest.raises(ResourcesStoppedError, match="1 sessions are active"):
        bench.store.model_resources.stop(resources.id, force=False)
    bench.store.model_resources.stop(resources.id, force=True)
    assert statuses(bench, resources, session) == ("STOPPED", "STOPPING")
    with pytest.raises(ResourcesStoppedError):
        bench.store.model_resources.stop(resources.id, force=True)
    with pytest.raises(ResourcesStoppedError):
        bench.store.sessions.create(msgspec.structs.replace(SPEC, resources_id=resources.id), [WORKER])
    with pytest.raises(ResourcesStoppedError):
        bench.store.model_resources.extend(resources.id, 60)


def test_sessions_that_a_dying_process_left_are_stopped_by_the_next_sweep(bench: Bench) -> None:
    resources = made(bench)
    session = attached(bench, resources)
    bench.store.model_resources._context.scripts.run(
        "stop_resources", id=resources.id, mode="force", **idempotency_arguments(None)
    )
    assert statuses(bench, resources, session) == ("STOPPED", "RUNNING")
    bench.store.model_resources.sweep()
    assert statuses(bench, resources, session) == ("STOPPED", "STOPPING")


def test_sessions_that_a_dying_process_left_are_stopped_when_its_client_asks_again(bench: Bench) -> None:
    resources, once = made(bench), IdempotencyKey(scope="stop", key="k", digest=b"d")
    session = attached(bench, resources)
    bench.store.model_resources._context.scripts.run(
        "stop_resources", id=resources.id, mode="force", **idempotency_arguments(once)
    )
    bench.store.model_resources.stop(resources.id, force=True, idempotency_key=once)
    assert statuses(bench, resources, session) == ("STOPPED", "STOPPING")


def test_they_go_when_the_last_of_their_sessions_has_gone(bench: Bench) -> None:
    resources = made(bench)
    session = attached(bench, resources)
    bench.store.model_resources.stop(resources.id, force=True)
    bench.run(bench.outbox.take()[0])
    later = with_settings(bench, session_retention=0.0)
    later.model_resources.sweep()
    assert bench.store.model_resources.get(resources.id, SPEC.owner).status is ModelResourcesStatus.STOPPED
    assert bench.store.sessions.remove(session.id, 1.0)
    later.model_resources.sweep()
    with pytest.raises(NotFoundError):
        bench.store.model_resources.get(resources.id, SPEC.owner)
    assert list(bench.store.model_resources.newest(SPEC.owner)) == []


def test_a_session_that_ended_keeps_them_from_its_end_on_and_is_looked_at_no_more(bench: Bench) -> None:
    resources = made(bench)
    session = attached(bench, resources)
    age(bench, 2 * TIMEOUT, f"resources:{resources.id}", f"session:{session.id}")
    bench.store.sessions.stop(session.id)
    bench.run(bench.outbox.take()[0])
    assert bench.redis.scard(f"celerity:resources:{resources.id}:sessions") == 0
    bench.store.model_resources.sweep()
    assert statuses(bench, resources, session) == ("READY", "STOPPED")
    ended_at = bench.store.sessions.get(session.id).updated_at
    expires_at = bench.store.model_resources.get(resources.id, SPEC.owner).expires_at
    assert expires_at == pytest.approx(ended_at + TIMEOUT)


def test_their_sessions_are_listed_apart_from_the_others(bench: Bench) -> None:
    resources, store = made(bench), bench.store.sessions
    own = bench.running_session()
    first, second, third = (attached(bench, resources) for _ in range(3))
    store.stop(second.id)
    assert [session.id for session in store.list(SPEC.owner, None, 10, 0)] == [own.id]
    assert [session.id for session in store.newest_of_resources(SPEC.owner)] == [third.id, second.id, first.id]
    among = store.newest_of_resources(SPEC.owner, (SessionStatus.RUNNING, SessionStatus.STOPPING))
    assert [session.id for session in among] == [third.id, second.id, first.id]
    running = store.newest_of_resources(SPEC.owner, (SessionStatus.RUNNING,))
    assert [session.id for session in running] == [third.id, first.id]


def test_weights_syncs_to_come_are_foretold(bench: Bench) -> None:
    session, operations = attached(bench, made(bench)), bench.store.operations
    assert operations.steps_to_publish(session.id) == {}
    step, sync, kept = OperationKind.OPTIM_STEP, OperationKind.WEIGHTS_SYNC, OptimStepResult(step=1, metrics={})
    ids = [operations.accept(session.id, kind, WeightsSyncRequest()).id for kind in (step, sync, step, step, sync)]
    assert operations.steps_to_publish(session.id) == {ids[1]: 1, ids[4]: 3}
    bench.run(ids[0], kept)
    assert operations.steps_to_publish(session.id) == {ids[1]: 1, ids[4]: 3}
    bench.run(ids[1], WeightsSyncResult(step=1))
    bench.run(ids[2], OperationError(ErrorCode.NON_FINITE, "not finite"))
    assert operations.steps_to_publish(session.id) == {ids[4]: 2}


def test_the_newest_sessions_are_those_with_resources_and_those_without(bench: Bench) -> None:
    first, second = attached(bench, made(bench)), bench.running_session()
    third = attached(bench, made(bench))
    newest = [session.id for session in bench.store.sessions.newest(SPEC.owner)]
    assert newest == [third.id, second.id, first.id]
    assert list(bench.store.sessions.newest("another")) == []
