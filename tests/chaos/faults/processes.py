"""Processes that are killed, or stand still. What is killed is started again at once."""

import os
import random
import signal
import time
from contextlib import suppress
from pathlib import Path

from stack.stack import Stack

STALL_SECONDS = 4.0
FREEZE_SECONDS = 30.0


def kill_worker(stack: Stack, rng: random.Random) -> None:
    _kill(stack, any_worker(stack, rng))


def kill_api(stack: Stack, _: random.Random) -> None:
    _kill(stack, "api")


def kill_api_process(stack: Stack, rng: random.Random) -> None:
    """One of gunicorn's; its master starts another."""
    master = stack.processes["api"].pid
    pids = [int(pid) for pid in Path(f"/proc/{master}/task/{master}/children").read_text().split()]
    if pids:
        _signal(rng.choice(pids), signal.SIGKILL)


def kill_valkey(stack: Stack, _: random.Random) -> None:
    _kill(stack, "valkey")


def stall_worker(stack: Stack, rng: random.Random) -> None:
    """Longer than its heartbeat may be missed: it wakes as a zombie."""
    _stop_for(stack, any_worker(stack, rng), STALL_SECONDS)


def freeze_valkey(stack: Stack, _: random.Random) -> None:
    """Every connection is there and none gives an answer, for longer than anyone waits for one."""
    _stop_for(stack, "valkey", FREEZE_SECONDS)


def any_worker(stack: Stack, rng: random.Random) -> str:
    return rng.choice([name for name in stack.processes if name.startswith("worker")])


def _kill(stack: Stack, name: str) -> None:
    process = stack.processes[name]
    process.kill()
    stack.run(process.service)


def _stop_for(stack: Stack, name: str, seconds: float) -> None:
    pid = stack.processes[name].pid
    _signal(pid, signal.SIGSTOP)
    time.sleep(seconds)
    _signal(pid, signal.SIGCONT)


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
