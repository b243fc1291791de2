"""Two workers beside each other: a message that comes again, a busy one, a zombie, one that is asked to end."""

import dataclasses
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from stack.stack import Stack
from testing.bodies import sample_body, train_body, whole
from tests.stories.client import Session, log_of, trained_session
from tests.waiting import eventually

TRAINING = train_body([whole([1, 2, 3, 4])], "LOSS_TYPE_CROSS_ENTROPY")
# Seconds of work on the model "broad".
LONG = sample_body([1, 2], max_tokens=300)

# A worker that never acknowledges, to a broker that is made to keep account of its messages: it gives one again when it
# has not heard of it for a second.
FORGETFUL = """
from celery import signals
from workers.celery_app import app

signals.celeryd_init.connect(lambda conf, **_: setattr(conf.task_queues[0], "no_ack", False), weak=False)
app.conf.broker_transport_options |= {
    "visibility_timeout": 1, "unacked_restore_interval": 0.5, "unacked_restore_throttle": 1,
}
signals.task_received.connect(lambda request, **_: print("received", request.id, flush=True), weak=False)
app.start(["--quiet", "worker"])
"""


@pytest.fixture(scope="module")
def http(fragile: Stack) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=fragile.url, timeout=60.0) as http:
        yield http


@pytest.fixture(scope="module")
def home(fragile: Stack, http: httpx.Client) -> Session:
    """A session of the stack's own worker, which was alone when it came."""
    session, _ = trained_session(http, 2)
    assert holder(fragile, http, session) == "worker"
    return session


@pytest.fixture(scope="module")
def away(fragile: Stack, http: httpx.Client, home: Session) -> Iterator[Session]:
    """A session of another, forgetful worker, which has most room since it holds nothing."""
    own = fragile.processes["worker"].service
    environment = {**own.environment, "CELERITY_DRAIN_SECONDS": "1"}
    command = [sys.executable, "-c", FORGETFUL]
    fragile.run(dataclasses.replace(own, name="another", command=command, environment=environment))
    eventually(lambda: len(workers(http)) == 2)
    session = Session(http, "broad")
    assert [holder(fragile, http, each) for each in (home, session)] == ["worker", "another"]
    yield session
    fragile.processes.pop("another").kill()
    eventually(lambda: len(workers(http)) == 1)


def workers(http: httpx.Client) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = http.get("/v1/workers").json()
    return found


def holder(stack: Stack, http: httpx.Client, session: Session) -> str:
    """The name of the process that holds the session."""
    session_id = session.path.rpartition("/")[2]
    (worker_id,) = [each["worker_id"] for each in workers(http) if session_id in str(each["sessions"])]
    (name,) = [name for name, process in stack.processes.items() if f"-{process.pid}-" in worker_id]
    return name


def test_a_message_that_comes_again_while_its_operation_runs_does_nothing(fragile: Stack, away: Session) -> None:
    paths = [away.submit(*each) for each in (("sample", LONG), ("forward-backward", TRAINING), ("optim-step", {}))]
    assert away.result(paths[2])["step"] == 1
    assert len(away.http.get(f"{away.path}/operations").json()) == 3
    long_id = paths[0].rpartition("/")[2]
    # On a fast machine it has ended by then.
    eventually(lambda: log_of(fragile.plan.settings.data_dir).count(f"received {long_id}") > 1)
    log = log_of(fragile.plan.settings.data_dir)
    assert len([line for line in log.splitlines() if long_id in line and "COMPLETED" in line]) == 1


def test_a_small_operation_on_an_idle_worker_does_not_wait_for_a_big_one_on_a_busy_one(
    home: Session, away: Session
) -> None:
    big = away.submit("sample", LONG)
    assert home.sample([1, 2], max_tokens=2)
    assert is_running(away, big)
    assert away.result(big)["sequences"]


def is_running(session: Session, path: str) -> bool:
    status: str = session.http.get(path, headers={"Prefer": "wait=0"}).json()["status"]
    return status.endswith("RUNNING")


@pytest.mark.usefixtures("away")
def test_a_worker_that_was_only_slow_is_refused_and_drops_the_session(
    fragile: Stack, http: httpx.Client, home: Session
) -> None:
    slow = fragile.processes["worker"].pid
    os.kill(slow, signal.SIGSTOP)
    try:
        paths = [home.submit(kind, body) for kind, body in (("forward-backward", TRAINING), ("optim-step", {}))]
        assert home.result(paths[1])["step"] == 3
    finally:
        os.kill(slow, signal.SIGCONT)
    after = home.sample([1, 2], 2, max_tokens=6, seed=1)
    eventually(lambda: [each["resident_count"] for each in workers(http) if f"-{slow}-" in each["worker_id"]] == [0])
    assert holder(fragile, http, home) == "another"
    assert home.sample([1, 2], 2, max_tokens=6, seed=1) == after
    assert home.read()["step"] == 3


def test_a_worker_that_is_asked_to_end_is_gone_in_the_stated_time_and_what_it_ran_is_done_elsewhere(
    fragile: Stack, http: httpx.Client, home: Session, away: Session
) -> None:
    """What it holds goes to the one that was slow and has older adapters of some of it."""
    before = home.sample([1, 2], 2, max_tokens=6, seed=1)
    running = away.submit("sample", LONG)
    eventually(lambda: is_running(away, running))
    another = fragile.processes["another"]
    os.kill(another.pid, signal.SIGTERM)
    eventually(lambda: another.poll() is not None)
    assert another.poll() == 0
    assert "still running after 1 s of draining" in log_of(fragile.plan.settings.data_dir)
    assert [holder(fragile, http, each) for each in (home, away)] == ["worker", "worker"]
    assert away.result(running)["sequences"]
    assert home.sample([1, 2], 2, max_tokens=6, seed=1) == before
