"""One supervised process, with small commands in the place of the real services."""

import io
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import psutil
import pytest

from stack.log import Log
from stack.process import ROOT, Process, Service
from tests.waiting import eventually, is_running

STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
)
PARENT = "import subprocess, time; print(subprocess.Popen(['sleep', '600']).pid, flush=True); time.sleep(600)"


@pytest.fixture
def output() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def start(output: io.StringIO) -> Iterator[Callable[..., Process]]:
    """Starts Python code as a service; what still runs after the test is killed."""
    started: list[Process] = []

    def start(code: str, grace: float = 10.0) -> Process:
        service = Service("child", [sys.executable, "-c", code], dict(os.environ), grace=grace)
        started.append(Process(service, Log(output)))
        return started[-1]

    yield start
    for process in started:
        process.kill()


def test_every_line_is_logged_with_the_name_and_one_time_and_bad_utf8_does_no_harm(
    start: Callable[..., Process], output: io.StringIO
) -> None:
    process = start(r"import sys; sys.stdout.buffer.write(b'one\n\xff two\n'); print('2026-01-02 03:04:05,678 timed')")
    eventually(lambda: process.poll() is not None)
    process.stop()
    line = r"child    \| (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\S*) (.*)\n"
    times, texts = zip(*re.findall(line, output.getvalue()), strict=True)
    assert texts == ("one", "\ufffd two", "timed")
    assert times[2] == "2026-01-02 03:04:05,678"
    assert len(output.getvalue().splitlines()) == 3


@pytest.mark.parametrize(
    ("code", "expected"), [("raise SystemExit(7)", 7), ("import os; os.kill(os.getpid(), 9)", 128 + signal.SIGKILL)]
)
def test_the_exit_code_is_what_a_shell_would_say(start: Callable[..., Process], code: str, expected: int) -> None:
    process = start(code)
    eventually(lambda: process.poll() is not None)
    assert process.poll() == expected


def test_stop_asks_first(start: Callable[..., Process], output: io.StringIO) -> None:
    process = start(
        "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(print('saved')));"
        "print('up', flush=True); time.sleep(600)"
    )
    eventually(lambda: "up" in output.getvalue())
    process.stop()
    assert process.poll() == 0 and "saved" in output.getvalue()


def test_stop_forces_what_does_not_listen(start: Callable[..., Process], output: io.StringIO) -> None:
    process = start(STUBBORN, grace=0.1)
    eventually(lambda: "up" in output.getvalue())
    process.stop()
    assert process.poll() == 128 + signal.SIGKILL and "killed" in output.getvalue()


def test_stop_ends_what_the_process_had_started(start: Callable[..., Process], output: io.StringIO) -> None:
    process = start(PARENT)
    eventually(lambda: "\n" in output.getvalue())
    grandchild = psutil.Process(int(output.getvalue().split()[-1]))
    process.stop()
    eventually(lambda: not is_running(grandchild))


def test_the_process_leads_a_group_of_its_own(start: Callable[..., Process]) -> None:
    assert os.getpgid(start("import time; time.sleep(600)").pid) != os.getpgid(0)


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")
def test_the_process_ends_with_a_supervisor_that_is_killed() -> None:
    """The supervisor here is a Python that starts one service and is then killed with -9."""
    supervisor = subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
    )
    assert supervisor.stdout is not None
    with supervisor.stdout as output:
        child = psutil.Process(int(output.readline()))
    supervisor.kill()
    supervisor.wait()
    eventually(lambda: not is_running(child))


SUPERVISOR = """
import os, sys, time
from stack.log import Log
from stack.process import Process, Service
process = Process(Service("child", ["sleep", "600"], dict(os.environ)), Log(sys.stderr))
print(process.pid, flush=True)
time.sleep(600)
"""
