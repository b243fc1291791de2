"""/metrics after real operations, read as Prometheus reads it."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from app import create_app
from domain.metrics import OperationMetrics
from domain.operation import ErrorCode, OperationError
from domain.optim_step import OptimStepResult
from settings import Settings
from store import keys
from store.store import Store, open_store
from tests.http.conftest import WORKER, Api

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def scraped(client: Any, **headers: str) -> Samples:
    answer = client.get("/metrics", headers=headers)
    assert answer.status_code == 200, answer.text
    return dict(_samples(answer.text))


def _samples(text: str) -> Iterator[tuple[tuple[str, frozenset[tuple[str, str]]], float]]:
    for family in text_string_to_metric_families(text):
        assert family.documentation, family.name
        for sample in family.samples:
            yield (sample.name, frozenset(sample.labels.items())), sample.value


def at(samples: Samples, name: str, **labels: str) -> float:
    return samples[name, frozenset(labels.items())]


def test_operations_are_counted_by_kind_and_end(api: Api) -> None:
    session = api.session()
    api.begin(session)
    first, second, third = (api.client.post(f"{session}:optim-step", json={}).json["operation_id"] for _ in range(3))
    api.finish(first, OptimStepResult(step=1, metrics={}))
    api.finish(second, OperationError(ErrorCode.INVALID_INPUT, "nothing accumulated"))
    samples = scraped(api.client)
    assert at(samples, "celerity_operations_accepted_total", kind="optim-step") == 3
    assert at(samples, "celerity_operations_total", kind="optim-step", state="COMPLETED") == 1
    assert at(samples, "celerity_operations_total", kind="optim-step", state="FAILED") == 1
    assert at(samples, "celerity_operations_total", kind="create-session", state="COMPLETED") == 1
    assert api.client.post(f"{session}/operations/{third}:cancel").status_code == 200
    samples = scraped(api.client)
    assert at(samples, "celerity_operations_total", kind="optim-step", state="FAILED") == 2
    for code in ("INVALID_INPUT", "CANCELLED"):
        assert at(samples, "celerity_operations_failed_total", kind="optim-step", code=code) == 1


def test_seconds_of_waiting_and_running_are_histograms(api: Api) -> None:
    session = api.session()
    api.begin(session)
    operation_id = api.sample(session)
    accepted = float(api.redis.hget(keys.operation(operation_id), "created_at"))
    api.redis.hset(keys.operation(operation_id), "created_at", accepted - 100)
    api.finish(operation_id, None)
    samples = scraped(api.client)
    waiting, running = "celerity_operation_waiting_seconds", "celerity_operation_running_seconds"
    assert at(samples, f"{waiting}_bucket", kind="sample", le="60.0") == 0
    assert at(samples, f"{waiting}_bucket", kind="sample", le="300.0") == 1
    assert at(samples, f"{waiting}_bucket", kind="sample", le="+Inf") == 1
    assert at(samples, f"{waiting}_count", kind="sample") == 1
    assert 100 <= at(samples, f"{waiting}_sum", kind="sample") < 110
    assert at(samples, f"{running}_bucket", kind="sample", le="10.0") == 1
    assert 0 <= at(samples, f"{running}_sum", kind="sample") < 10


def test_what_ended_without_a_start_waited_and_did_not_run(api: Api) -> None:
    session = api.session()
    operation_id = api.sample(session)
    api.client.post(f"{session}/operations/{operation_id}:cancel")
    samples = scraped(api.client)
    assert at(samples, "celerity_operation_waiting_seconds_count", kind="sample") == 1
    assert ("celerity_operation_running_seconds_count", frozenset({("kind", "sample")})) not in samples


def test_tokens_and_refused_duplicates_are_counted_once(api: Api) -> None:
    session = api.session()
    api.begin(session)
    first, second = api.sample(session), api.sample(session)
    for operation_id, sampled in ((first, 12), (second, 30)):
        claim = api.store.claims.claim(operation_id, WORKER, f"fence of {operation_id}")
        assert claim
        assert api.store.claims.claim(operation_id, WORKER, "another") is None
        for _ in range(2):
            assert api.store.claims.finish(claim, None, OperationMetrics(sampled=sampled))
    assert claim
    stale = msgspec.structs.replace(claim, fence="another")
    assert not api.store.claims.finish(stale, None, OperationMetrics(sampled=1000))
    samples = scraped(api.client)
    assert at(samples, "celerity_tokens_total", use="sampled") == 42
    assert at(samples, "celerity_refused_total", what="claim") == 2
    assert at(samples, "celerity_refused_total", what="finish") == 1


def test_sessions_workers_and_redis_are_gauges(api: Api) -> None:
    api.begin(api.session())
    api.session()
    samples = scraped(api.client)
    assert at(samples, "celerity_sessions", status="RUNNING") == 1
    assert at(samples, "celerity_sessions", status="CREATING") == 1
    worker = {"worker": WORKER, "device": "cpu"}
    assert at(samples, "celerity_worker_sessions", **worker) == 2
    assert at(samples, "celerity_worker_free_bytes", **worker) == 1 << 30
    assert at(samples, "celerity_worker_decode_utilization", **worker) == 0.75
    assert at(samples, "celerity_worker_training_utilization", **worker) == 0.5
    assert 0 <= at(samples, "celerity_worker_heartbeat_age_seconds", **worker) < 60
    assert 0 < at(samples, "celerity_redis_ping_seconds") < 10


def test_every_process_gives_the_same_numbers(api: Api, settings: Settings) -> None:
    api.begin(api.session())
    other = open_store(settings)
    first, second = scraped(api.client), scraped(create_app(settings, other).test_client())
    other.close()
    assert first.keys() == second.keys()
    counted = [key for key in first if key[0].endswith(("_total", "_bucket", "_sum", "_count"))]
    assert counted and [first[key] for key in counted] == [second[key] for key in counted]


@pytest.mark.parametrize("is_open", [True, False])
def test_without_a_key_it_is_there_only_when_a_setting_says_so(settings: Settings, store: Store, is_open: bool) -> None:
    locked = msgspec.structs.replace(settings, api_keys=("one",), open_metrics=is_open)
    client: Any = create_app(locked, store).test_client()
    assert client.get("/metrics").status_code == (200 if is_open else 401)
    assert scraped(client, Authorization="Bearer one")
    assert client.get("/v1/models").status_code == 401
