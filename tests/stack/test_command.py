"""The command of `celerity run`, with small programs."""

import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from stack.command import Command, check_exists
from tests.waiting import eventually, is_running

# Says in a file who it and its child are; both are deaf to SIGTERM.
STUBBORN_FAMILY = """
import os, pathlib, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen(["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"])
pathlib.Path(sys.argv[1]).write_text(f"{os.getpid()} {child.pid} .")
time.sleep(600)
"""


@pytest.fixture
def family(tmp_path: Path) -> Iterator[tuple[Command, list[psutil.Process]]]:
    said = tmp_path / "pids"
    command = Command([sys.executable, "-c", STUBBORN_FAMILY, str(said)])
    eventually(lambda: said.exists() and said.read_text().endswith("."))
    family = [psutil.Process(int(pid)) for pid in said.read_text().split()[:2]]
    yield command, family
    for process in family:
        if is_running(process):
            process.kill()


def test_its_end_is_that_of_all_that_it_started_even_when_they_will_not(
    family: tuple[Command, list[psutil.Process]],
) -> None:
    command, processes = family
    assert command.poll() is None and all(is_running(each) for each in processes)
    command.end()
    eventually(lambda: not any(is_running(each) for each in processes))
    assert command.poll() == 137


@pytest.mark.parametrize(("code", "expected"), [("", 0), ("raise SystemExit(7)", 7), ("import os; os.abort()", 134)])
def test_its_exit_code_is_what_a_shell_would_say(code: str, expected: int) -> None:
    command = Command([sys.executable, "-c", code])
    eventually(lambda: command.poll() is not None)
    command.end()
    assert command.poll() == expected


def test_a_program_that_is_not_there_is_refused() -> None:
    check_exists(sys.executable)
    with pytest.raises(ValueError, match="no program 'no-such-program'"):
        check_exists("no-such-program")
