"""The disk of the objects is away for a while: what was accepted waits, and is done once."""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx

from stack.stack import Stack
from testing.bodies import sample_body, train_body, whole
from tests.stories.client import trained_session
from tests.stories.process_control import kill, restart
from tests.waiting import eventually

LONG = [1, 2, 3, 4] * 50


@contextmanager
def standing_still(stack: Stack) -> Iterator[None]:
    """The worker does nothing meanwhile."""
    pid = stack.processes["worker"].pid
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def disk_away(folder: Path) -> Iterator[None]:
    elsewhere = folder.with_name("elsewhere")
    folder.rename(elsewhere)
    try:
        yield
    finally:
        elsewhere.rename(folder)


def test_operations_wait_for_the_disk_and_the_next_worker_has_what_they_made(
    fragile: Stack, client: httpx.Client
) -> None:
    session, _ = trained_session(client, 3)
    training, objects = train_body([whole(LONG)], "LOSS_TYPE_CROSS_ENTROPY"), fragile.plan.settings.data_dir / "objects"
    bodies = [("sample", sample_body([1], max_tokens=90, seed=1)), ("forward-backward", training), ("optim-step", {})]
    with ExitStack() as standing:
        standing.enter_context(standing_still(fragile))
        paths = [session.submit(kind, body) for kind, body in bodies]
        with disk_away(objects):
            standing.close()
            refused = client.post(f"{session.path}:forward-backward", json=training)
            assert refused.status_code == 503 and int(refused.headers["Retry-After"]) >= 1
            eventually(lambda: client.get("/readyz").status_code == 503)
            # The sample may draw an end token early, and its answer then fits into Redis.
            waiting = {client.get(path).json()["status"].rpartition("_")[2] for path in paths[1:]}
            assert waiting <= {"RUNNING", "PENDING"}
    assert [session.result(path) for path in paths][-1]["step"] == 4
    before = session.sample([1, 2], 2, max_tokens=6, seed=1)
    kill(fragile, "worker")
    restart(fragile, "worker")
    assert session.sample([1, 2], 2, max_tokens=6, seed=1) == before
