"""Metric series are written with the end of the operation that measured them, and kept within bounds."""

import pytest

from domain.forward_backward import ForwardBackwardResult
from domain.metrics import OperationMetrics
from domain.operation import ErrorCode, OperationError, OperationKind
from domain.optim_step import OptimStepRequest, OptimStepResult
from store import keys
from store.errors import KeyReusedError, NotFoundError, TooManyNamesError
from store.idempotency import IdempotencyKey
from store.metric_series import MOST_NAMES, Latest, Point
from store.store import Store
from tests.store.conftest import WORKER, Bench, with_settings

TRAIN, STEP = OperationKind.FORWARD_BACKWARD, OperationKind.OPTIM_STEP


def ended(bench: Bench, session_id: str, kind: OperationKind, outcome, measured: OperationMetrics) -> None:  # type: ignore[no-untyped-def]
    operation = bench.store.operations.accept(session_id, kind, OptimStepRequest())
    assert bench.store.claims.finish(bench.claim(operation.id), outcome, measured)


def trained(bench: Bench, session_id: str, loss: float, tokens: int = 0) -> None:
    result = ForwardBackwardResult(loss=loss, metrics={})
    ended(bench, session_id, TRAIN, result, OperationMetrics(trained=tokens, values={"loss": loss}))


def stepped(bench: Bench, session_id: str, step: int, norm: float) -> None:
    result = OptimStepResult(step=step, metrics={})
    ended(bench, session_id, STEP, result, OperationMetrics(values={"grad_norm": norm}))


def shape(points: list[Point]) -> list[tuple[int, dict[str, float], int]]:
    return [(point.step, point.values, point.trained) for point in points]


def test_passes_and_steps_join_the_step_they_belong_to(bench: Bench) -> None:
    session = bench.running_session()
    trained(bench, session.id, 3.0, tokens=10)
    trained(bench, session.id, 2.0, tokens=5)
    stepped(bench, session.id, 1, 0.5)
    trained(bench, session.id, 1.0, tokens=1)
    points = bench.store.metric_series.measured(session.id, "", 100)
    assert shape(points) == [
        (1, {"loss": 3.0}, 10),
        (1, {"loss": 2.0}, 15),
        (1, {"grad_norm": 0.5}, 15),
        (2, {"loss": 1.0}, 16),
    ]
    assert bench.store.metric_series.measured(session.id, points[1].id, 1) == [points[2]]
    assert bench.store.metric_series.measured(session.id, points[3].id, 100) == []


def test_what_failed_or_came_twice_or_too_late_is_on_no_curve(bench: Bench) -> None:
    session = bench.running_session()
    operation = bench.store.operations.accept(session.id, TRAIN, OptimStepRequest())
    late = bench.claim(operation.id)
    bench.beat("worker-2")
    assert bench.store.sessions.move(session.id, WORKER, "worker-2")
    measured = OperationMetrics(trained=7, values={"loss": 1.0})
    assert not bench.store.claims.finish(late, ForwardBackwardResult(loss=1.0, metrics={}), measured)
    assert bench.store.metric_series.measured(session.id, "", 100) == []
    claim = bench.claim(operation.id, "worker-2")
    for _ in range(2):
        assert bench.store.claims.finish(claim, ForwardBackwardResult(loss=1.0, metrics={}), measured)
    second = bench.store.operations.accept(session.id, TRAIN, OptimStepRequest())
    failed = OperationError(ErrorCode.NON_FINITE, "not finite")
    assert bench.store.claims.finish(bench.claim(second.id, "worker-2"), failed)
    assert shape(bench.store.metric_series.measured(session.id, "", 100)) == [(1, {"loss": 1.0}, 7)]


@pytest.mark.parametrize("most", [0, 300])
def test_a_curve_has_no_more_points_than_its_setting_and_a_block_of_the_stream(bench: Bench, most: int) -> None:
    store = with_settings(bench, curve_points=most)
    session = bench.running_session()
    for number in range(450):
        store.metric_series.log(session.id, "reward", number, 1.0)
    kept = [point.step for point in store.metric_series.logged(session.id, "", 1000)]
    assert kept == list(range(450 - len(kept), 450))
    assert most <= len(kept) <= most + 100


def test_what_is_logged_is_read_back_in_order_beside_the_rest(bench: Bench) -> None:
    session = bench.running_session()
    bench.store.metric_series.log(session.id, "reward", 1, 0.25)
    bench.store.metric_series.log(session.id, "länge", 1, 12.0)
    points = bench.store.metric_series.logged(session.id, "", 100)
    assert [(point.step, point.values) for point in points] == [(1, {"reward": 0.25}), (1, {"länge": 12.0})]
    assert bench.store.metric_series.measured(session.id, "", 100) == []
    assert bench.store.metric_series.logged(session.id, points[0].id, 100) == points[1:]


def test_names_are_bounded_and_a_session_must_be_there(bench: Bench) -> None:
    session = bench.running_session()
    for number in range(MOST_NAMES):
        bench.store.metric_series.log(session.id, f"name {number}", 0, 0.0)
    with pytest.raises(TooManyNamesError, match="32"):
        bench.store.metric_series.log(session.id, "one more", 0, 0.0)
    bench.store.metric_series.log(session.id, "name 0", 1, 0.0)
    with pytest.raises(NotFoundError):
        bench.store.metric_series.log("nothing", "reward", 0, 0.0)


def test_a_key_logs_once(bench: Bench) -> None:
    session = bench.running_session()
    for _ in range(2):
        bench.store.metric_series.log(session.id, "reward", 1, 1.0, IdempotencyKey("path", "key", b"digest"))
    with pytest.raises(KeyReusedError):
        bench.store.metric_series.log(session.id, "reward", 2, 1.0, IdempotencyKey("path", "key", b"other"))
    assert len(bench.store.metric_series.logged(session.id, "", 100)) == 1


def test_the_latest_is_the_last_loss_the_last_reward_and_the_rate_of_tokens(bench: Bench) -> None:
    session, silent = bench.running_session(), bench.running_session()
    key = keys.series(session.id)
    for id, trained_by_then, values in (
        ("1000-0", 100, '{"loss":2}'),
        ("3000-0", 700, '{"loss":1}'),
        ("3000-1", 700, "{}"),
    ):
        bench.redis.xadd(key, {"step": 1, "sampled": 0, "trained": trained_by_then, "values": values}, id=id)
    bench.store.metric_series.log(session.id, "reward", 1, 0.5)
    bench.store.metric_series.log(session.id, "length", 1, 9.0)
    seen = bench.store.metric_series.latest([session.id, silent.id])
    assert seen == [Latest(loss=1.0, reward=0.5, tokens_per_second=300.0), Latest()]


def requests_of(store: Store, session_id: str, ids: list[str]) -> list[str]:
    """Those of the operations whose request can still be read."""
    kept = []
    for operation_id in ids:
        try:
            store.operations.request(store.operations.get(session_id, operation_id), OptimStepRequest)
            kept.append(operation_id)
        except NotFoundError:
            pass
    return kept


def test_the_newest_requests_are_kept_and_those_that_a_replay_needs(bench: Bench) -> None:
    store, session = with_settings(bench, requests_kept=2), bench.running_session()
    ids = [store.operations.accept(session.id, STEP, OptimStepRequest()).id for _ in range(4)]
    claims = []
    for step, id in enumerate(ids, 1):
        claims.append(bench.claim(id))
        store.claims.finish(claims[-1], OptimStepResult(step=step, metrics={}))
    assert requests_of(store, session.id, ids) == ids, "nothing is covered by a snapshot yet"
    assert store.snapshots.save(claims[2], b"the adapter")
    assert requests_of(store, session.id, ids) == ids[2:]
    replayed = store.snapshots.load(session.id).replayed
    assert [operation.seq for operation in replayed] == [4]


def test_a_removed_session_leaves_no_curve(bench: Bench) -> None:
    store, session = with_settings(bench, requests_kept=2), bench.running_session()
    trained(bench, session.id, 1.0)
    store.metric_series.log(session.id, "reward", 1, 1.0)
    bench.outbox.take()
    store.sessions.stop(session.id)
    bench.run(bench.outbox.take()[0])
    assert store.sessions.remove(session.id, idempotency_seconds=1)
    assert [key for key in bench.redis.scan_iter() if session.id.encode() in key] == []
