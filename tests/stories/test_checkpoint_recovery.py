"""Checkpoints when a worker dies: those that were being saved, and sessions that went on from one."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from stack.running import running_stack
from stack.stack import Stack
from tests.stories.client import Session, whole
from tests.stories.conftest import SETTINGS

QUICK = {**SETTINGS, "CELERITY_HEARTBEAT_INTERVAL": "0.2", "CELERITY_HEARTBEAT_TIMEOUT": "3"}


@pytest.fixture(scope="module")
def fragile(tmp_path_factory: pytest.TempPathFactory, models_dir: Path) -> Iterator[Stack]:
    with running_stack(tmp_path_factory.mktemp("fragile"), models_dir, QUICK) as stack:
        yield stack


@pytest.fixture
def client(fragile: Stack) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=fragile.url, timeout=60.0) as client:
        yield client


def kill_and_restart_worker(stack: Stack) -> None:
    stack.processes["worker"].kill()
    stack.run(stack.processes["worker"].service)
    stack.wait_ready()


def train(session: Session, steps: int) -> None:
    for _ in range(steps):
        session.train([whole([1, 2, 3, 4, 5])], "LOSS_TYPE_CROSS_ENTROPY")
        session.step(0.05)


@pytest.mark.parametrize("deleted", [False, True])
def test_a_session_that_went_on_from_a_checkpoint_is_replayed_from_it(
    fragile: Stack, client: httpx.Client, deleted: bool
) -> None:
    session = Session(client, dropout=0.1)
    train(session, 2)
    checkpoint_id = session.save("training")
    resumed = Session(client, checkpoint_id=checkpoint_id)
    train(resumed, 1)
    before = resumed.sample([1, 2], 2, max_tokens=6, seed=1)
    if deleted:
        assert client.delete(f"/v1/rl/checkpoints/{checkpoint_id}").status_code == 204
    kill_and_restart_worker(fragile)
    assert resumed.sample([1, 2], 2, max_tokens=6, seed=1) == before
    train(resumed, 1)
    assert resumed.read()["step"] == 4


@pytest.mark.parametrize("kind", ["training", "inference"])
def test_a_checkpoint_whose_worker_was_killed_is_saved_by_the_next(
    fragile: Stack, client: httpx.Client, kind: str
) -> None:
    session = Session(client)
    train(session, 1)
    os.kill(fragile.processes["worker"].pid, signal.SIGSTOP)
    path = session.submit(f"{kind}-checkpoint", {})
    kill_and_restart_worker(fragile)
    checkpoint_id = session.result(path)["checkpoint_id"]
    assert client.get(f"/v1/rl/checkpoints/{checkpoint_id}").json()["step"] == 1
