"""What a user sees when a part of the stack dies, stalls or comes back."""

import os
import signal
import time
from pathlib import Path

import httpx
import redis

from stack.running import running_stack
from stack.stack import Stack
from testing.bodies import SESSIONS, sample_body, train_body, whole
from tests.stories.client import Session, is_ready, log_of, trained_session
from tests.stories.conftest import FRAGILE
from tests.stories.process_control import kill, restart
from tests.waiting import eventually


def test_with_redis_away_requests_may_be_retried_and_work_goes_on_when_it_is_back(
    fragile: Stack, client: httpx.Client
) -> None:
    session = Session(client)
    kept = session.submit("sample", sample_body([1, 2], max_tokens=3, seed=1))
    before = session.end(kept)
    time.sleep(1.1)  # the append-only file is synced every second
    kill(fragile, "valkey")
    for answer in (client.get(kept), client.post(SESSIONS, json={"base_model": "tiny"}), client.get("/readyz")):
        assert answer.status_code == 503
        assert int(answer.headers["Retry-After"]) >= 1
    assert client.get("/healthz").status_code == 200
    restart(fragile, "valkey")
    assert session.end(kept) == before
    assert session.sample([1, 2], max_tokens=3, seed=1) == before["data"]["sequences"]


def test_a_message_that_is_lost_is_sent_again(fragile: Stack, client: httpx.Client) -> None:
    session = Session(client)
    session.sample([1], max_tokens=1)
    pid = fragile.processes["worker"].pid
    broker = redis.Redis.from_url(fragile.processes["worker"].service.environment["CELERITY_REDIS_URL"])
    os.kill(pid, signal.SIGSTOP)
    try:
        # The worker asks for the next message before it needs one, so the first is on its way already.
        lost = [session.submit("sample", sample_body([1], max_tokens=1)) for _ in range(2)]
        assert broker.delete(*broker.scan_iter(f"*-{pid}-*", _type="list")) == 1
    finally:
        os.kill(pid, signal.SIGCONT)
    assert all(session.result(path)["sequences"] for path in lost)
    broker.close()


def test_an_operation_whose_request_is_gone_fails_and_the_next_runs(fragile: Stack, client: httpx.Client) -> None:
    session = Session(client)
    session.sample([1], max_tokens=1)
    objects = fragile.plan.settings.data_dir / "objects" / "requests"
    os.kill(fragile.processes["worker"].pid, signal.SIGSTOP)
    try:
        large = session.submit("sample", sample_body([1] * 200, max_tokens=1))
        small = session.submit("sample", sample_body([1], max_tokens=1))
        (objects / large.rpartition("/")[2]).unlink()
    finally:
        os.kill(fragile.processes["worker"].pid, signal.SIGCONT)
    assert session.error(large)["code"] == "TRAINING_OPERATION_ERROR_CODE_INTERNAL_ERROR"
    assert session.result(small)["sequences"]


def test_what_a_killed_worker_was_given_is_done_by_the_next(fragile: Stack, client: httpx.Client) -> None:
    session, _ = trained_session(client, 3)
    pending = session.submit("forward-backward", train_body([whole([7, 8, 9])], "LOSS_TYPE_CROSS_ENTROPY"))
    os.kill(fragile.processes["worker"].pid, signal.SIGSTOP)
    waiting = [session.submit("optim-step", {}), session.submit("sample", sample_body([1], max_tokens=1))]
    kill(fragile, "worker")
    restart(fragile, "worker")
    assert session.result(pending)["loss"] > 0
    assert session.result(waiting[0])["step"] == 4
    assert session.result(waiting[1])["sequences"]
    assert session.read()["status"] == "TRAINING_SESSION_STATUS_RUNNING"


def test_weights_are_the_same_to_the_last_bit_after_their_worker_was_killed(
    fragile: Stack, client: httpx.Client
) -> None:
    """One session is replayed from the start, the other from a snapshot."""
    trained = [trained_session(client, steps) for steps in (3, 6)]
    kill(fragile, "worker")
    restart(fragile, "worker")
    for session, before in trained:
        assert session.sample([1, 2], 2, max_tokens=6, seed=1) == before


def test_more_sessions_than_memory_holds_take_turns_in_it(fragile: Stack, client: httpx.Client) -> None:
    trained = [trained_session(client, 5) for _ in range(4)]
    for session, before in trained * 2:
        assert session.sample([1, 2], 2, max_tokens=6, seed=1) == before
    for session, _ in trained:
        session.train([whole([1, 2, 3])], "LOSS_TYPE_CROSS_ENTROPY")
        assert session.step()["step"] == 6
    assert log_of(fragile.plan.settings.data_dir).count("parked") >= 4


def test_a_killed_api_process_is_replaced(fragile: Stack, client: httpx.Client) -> None:
    session = Session(client)
    expected = session.sample([1, 2], max_tokens=3, seed=1)
    master = fragile.processes["api"].pid
    children = Path(f"/proc/{master}/task/{master}/children").read_text().split()
    assert children
    for child in children:
        os.kill(int(child), signal.SIGKILL)
    eventually(lambda: is_ready(client))
    assert session.sample([1, 2], max_tokens=3, seed=1) == expected


def test_after_a_restart_on_the_same_data_a_run_goes_on_where_it_was(tmp_path: Path, models_dir: Path) -> None:
    with running_stack(tmp_path, models_dir, FRAGILE) as stack, httpx.Client(base_url=stack.url, timeout=60) as client:
        session, before = trained_session(client, 2)
        path = session.submit("sample", sample_body([1, 2, 3], 2, max_tokens=4))
        ended = session.end(path)
        assert ended["status"] == "TRAINING_OPERATION_STATUS_COMPLETED"
    with running_stack(tmp_path, models_dir, FRAGILE) as stack, httpx.Client(base_url=stack.url, timeout=60) as client:
        session.http = client
        assert client.get(path).json() == ended
        assert client.get(SESSIONS).json() == [session.read()]
        assert session.sample([1, 2], 2, max_tokens=6, seed=1) == before
        session.train([whole([1, 2, 3])], "LOSS_TYPE_CROSS_ENTROPY")
        assert session.step()["step"] == 3
