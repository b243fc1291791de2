"""Processes that are killed, asked to end, or stand still. What has ended is started again at once."""

import os
import random
import signal
import time
from contextlib import suppress
from pathlib import Path

from tests.chaos.deployment import WORKERS, Deployment

STALL_SECONDS = 4.0
FREEZE_SECONDS = 12.0


def kill_worker(deployment: Deployment, rng: random.Random) -> None:
    deployment.kill(rng.choice(WORKERS))


def kill_api(deployment: Deployment, _: random.Random) -> None:
    deployment.kill("api")


def kill_api_process(deployment: Deployment, rng: random.Random) -> None:
    """One of gunicorn's; its master starts another."""
    master = deployment.processes["api"].pid
    pids = [int(pid) for pid in Path(f"/proc/{master}/task/{master}/children").read_text().split()]
    if pids:
        send_signal(rng.choice(pids), signal.SIGKILL)


def kill_valkey(deployment: Deployment, _: random.Random) -> None:
    deployment.kill(deployment.servers.primary.name)


def kill_replica(deployment: Deployment, _: random.Random) -> None:
    deployment.kill(deployment.servers.replica.name)


def drain_worker(deployment: Deployment, rng: random.Random) -> None:
    """SIGTERM: what it runs goes to the other one."""
    deployment.replace(rng.choice(WORKERS))


def drain_api(deployment: Deployment, _: random.Random) -> None:
    """SIGTERM: what it holds is answered."""
    deployment.replace("api")


def stall_worker(deployment: Deployment, rng: random.Random) -> None:
    """Longer than its heartbeat may be missed: it wakes as a zombie."""
    _stop_for(deployment, rng.choice(WORKERS), STALL_SECONDS)


def freeze_valkey(deployment: Deployment, _: random.Random) -> None:
    """Every connection is there and none gives an answer, for longer than anyone waits for one."""
    _stop_for(deployment, deployment.servers.primary.name, FREEZE_SECONDS)


def _stop_for(deployment: Deployment, name: str, seconds: float) -> None:
    pid = deployment.processes[name].pid
    send_signal(pid, signal.SIGSTOP)
    time.sleep(seconds)
    send_signal(pid, signal.SIGCONT)


def send_signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
