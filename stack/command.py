"""The command that `celerity run` runs: in the caller's terminal, and ended with everything that it started."""

import contextlib
import shutil
import signal
import subprocess
from collections.abc import Sequence

import psutil

from stack.process import leashed

GRACE_SECONDS = 1.0


def check_exists(program: str) -> None:
    """Raises ValueError when there is no such program."""
    if shutil.which(program) is None:
        raise ValueError(f"there is no program {program!r} that could be run")


class Command:
    def __init__(self, command: Sequence[str]) -> None:
        self._popen = subprocess.Popen(leashed(command, signal.SIGTERM))

    def poll(self) -> int | None:
        """The exit code (128 + the signal's number, as a shell has it), None while it runs."""
        code = self._popen.poll()
        return code if code is None or code >= 0 else 128 - code

    def end(self) -> None:
        """Ask it and its descendants to end, then force them. Does nothing after its end."""
        if self._popen.poll() is not None:
            return
        process = psutil.Process(self._popen.pid)
        family = [process, *process.children(recursive=True)]
        for each in family:
            _signal(each, signal.SIGTERM)
        _, remaining = psutil.wait_procs(family, GRACE_SECONDS)
        for each in remaining:
            _signal(each, signal.SIGKILL)
        self._popen.wait()


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        process.send_signal(number)
