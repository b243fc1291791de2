"""Ctrl-C at `celerity run`, as a terminal sends it: to the whole process group, at several moments."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from stack.process import ROOT
from tests.stack.test_whole_stack import environment
from tests.waiting import TIMEOUT_SECONDS, eventually, is_running

# Python's own answer to Ctrl-C would be a traceback; a program in the shell dies of it.
COMMAND = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(2, 0); print('at work', flush=True); time.sleep(600)",
]


class Run:
    """`celerity run` in a process group of its own."""

    def __init__(self, folder: Path) -> None:
        self._said, self._log = folder / "said.txt", folder / "stack.log"
        with self._said.open("w") as said:
            self._popen = subprocess.Popen(
                [sys.executable, "-m", "cli", "run", "--log", str(self._log), "--", *COMMAND],
                cwd=ROOT, env=environment(folder / "data"), stdout=said, stderr=said, start_new_session=True,
            )  # fmt: skip

    @property
    def said(self) -> str:
        return self._said.read_text()

    def wait_for(self, said: str, logged: str) -> None:
        def has_come() -> bool:
            log = self._log.read_text() if self._log.exists() else ""
            return said in self.said and logged in log

        eventually(has_come, lambda: self.said)

    def interrupt(self) -> int:
        """The exit code, once all that it had started is gone."""
        started = psutil.Process(self._popen.pid).children(recursive=True)
        os.killpg(self._popen.pid, signal.SIGINT)
        code = self._popen.wait(TIMEOUT_SECONDS)
        eventually(lambda: not any(is_running(each) for each in started), lambda: f"of {started} some run on")
        return code


@pytest.mark.parametrize(
    ("said", "logged"),
    [("starting Valkey", ""), ("starting", "valkey started"), ("starting", "api started"), ("at work", "")],
    ids=["at first", "as Valkey starts", "as the worker starts", "as the command runs"],
)
def test_it_ends_the_command_and_the_stack_with_a_line(tmp_path: Path, said: str, logged: str) -> None:
    run = Run(tmp_path)
    run.wait_for(said, logged)
    assert run.interrupt() == 128 + signal.SIGINT, run.said
    assert run.said.splitlines()[-1] == "celerity: SIGINT: the command and the stack have ended"
    assert "Traceback" not in run.said
