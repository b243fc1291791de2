"""Traces as a collector gets them: one for each operation, from its POST through Celery to the engine."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from stack.running import running_stack
from stack.stack import Stack
from testing.bodies import train_body, whole
from tests.stories.client import Session
from tests.stories.collector import Collector, Span, running_collector
from tests.stories.conftest import SETTINGS
from tests.waiting import eventually

ENGINE = "engine forward-backward"
BODY = train_body([whole([1, 2, 3, 4])], "LOSS_TYPE_CROSS_ENTROPY")


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with running_collector() as collector:
        yield collector


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory, models_dir: Path, collector: Collector) -> Iterator[Stack]:
    settings = {
        **SETTINGS,
        "CELERITY_TRACES": "true",
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_BSP_SCHEDULE_DELAY": "100",
    }
    with running_stack(tmp_path_factory.mktemp("traced"), models_dir, settings) as stack:
        yield stack
        stack.hasten()


@pytest.fixture(scope="module")
def session(traced: Stack) -> Iterator[Session]:
    with httpx.Client(base_url=traced.url, timeout=60.0) as http:
        yield Session(http)


@pytest.fixture(scope="module")
def operation_ids(session: Session) -> list[str]:
    """Of three operations that were accepted before the first had begun, so that the end of one sends the next."""
    paths = [session.submit("forward-backward", BODY) for _ in range(3)]
    for path in paths:
        session.result(path)
    return [path.rpartition("/")[2] for path in paths]


def lineage(collector: Collector, operation_id: str) -> list[Span]:
    """The engine's span of the operation and those around it, from the inside out."""
    found: list[Span] = []
    eventually(lambda: bool(_around(collector, operation_id, found)))
    return found


def _around(collector: Collector, operation_id: str, found: list[Span]) -> list[Span]:
    """Empty while one of them has not come yet."""
    found.clear()
    by_id = {span.id: span for span in collector.spans}
    for span in by_id.values():
        if span.name == ENGINE and span.attributes["celerity.operation_id"] == operation_id:
            found.append(span)
    while found and found[-1].parent_id:
        if found[-1].parent_id not in by_id:
            return []
        found.append(by_id[found[-1].parent_id])
    return found


def test_each_operation_is_one_trace_from_its_post_to_the_engine(
    collector: Collector, session: Session, operation_ids: list[str]
) -> None:
    traces = set()
    for operation_id in operation_ids:
        engine, task, message, post = lineage(collector, operation_id)
        assert [engine.service, task.service, post.service] == ["celerity-worker", "celerity-worker", "celerity-api"]
        assert (task.name, message.name) == ("run/forward_backward", "apply_async/forward_backward")
        assert post.name == "POST /v1/rl/training-sessions/<id:session_id>:forward-backward"
        ids = {"celerity.session_id": session.path.rpartition("/")[2], "celerity.operation_id": operation_id}
        assert all(ids.items() <= span.attributes.items() for span in (engine, task, post))
        traces.add(post.trace_id)
    assert len(traces) == len(operation_ids)


@pytest.mark.usefixtures("operation_ids")
def test_what_redis_is_asked_belongs_to_a_request(collector: Collector) -> None:
    def outermost() -> set[str]:
        return {span.name.split()[0] for span in collector.spans if not span.parent_id}

    # Spans come some time after what they tell of.
    eventually(lambda: outermost() >= {"POST", "GET"})
    assert "EVALSHA" in {span.name for span in collector.spans if span.parent_id}
    # A worker that starts sends itself a task, which is no request's.
    assert outermost() - {"apply_async/probe"} == {"POST", "GET"}
