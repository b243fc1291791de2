"""One supervised process: its command, its output in the log, and its end."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from stack.log import Log

ROOT = Path(__file__).resolve().parent.parent


def leashed(command: Sequence[str], at_parents_death: signal.Signals) -> list[str]:
    """`command`, for this process to start, such that it does not outlive it (see stack/leash.py)."""
    leash = Path(__file__).with_name("leash.py")
    return [sys.executable, str(leash), str(int(at_parents_death)), str(os.getpid()), *command]


@dataclass(frozen=True)
class Service:
    """What to run.

    `grace` is how many seconds it has, after SIGTERM, to end by itself; `inherits` are the file
    descriptors that it keeps open as long as it lives; `umask` is this process' unless it is given.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    grace: float = 10.0
    when_orphaned: signal.Signals = signal.SIGTERM
    inherits: tuple[int, ...] = ()
    umask: int = -1


class Process:
    """A running service. It leads a process group of its own, so that Ctrl-C reaches the supervisor alone."""

    def __init__(self, service: Service, log: Log) -> None:
        self.service = service
        self._log = log
        self._popen = self._start()
        self._reader = threading.Thread(target=self._copy_output, name=f"log-{service.name}", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._popen.pid

    def poll(self) -> int | None:
        """The exit code (128 + the signal's number, as a shell has it), None while it runs."""
        code = self._popen.poll()
        return code if code is None or code >= 0 else 128 - code

    def stop(self) -> None:
        """End it: asked first, then forced; then whatever it left in its group."""
        if self._popen.poll() is None:
            self._popen.terminate()
            try:
                self._popen.wait(self.service.grace)
            except subprocess.TimeoutExpired:
                self._log.write(self.service.name, f"still running after {self.service.grace:.0f} s: killed")
        self.kill()

    def kill(self) -> None:
        """SIGKILL to the whole group; returns when its output has been read."""
        self.signal_group(signal.SIGKILL)
        self._popen.wait()
        self._reader.join()

    def signal_group(self, number: signal.Signals) -> None:
        """Takes no lock, so that a signal handler may call it."""
        with contextlib.suppress(ProcessLookupError):  # the whole group may have ended
            os.killpg(self._popen.pid, number)

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            leashed(self.service.command, self.service.when_orphaned),
            cwd=ROOT,
            env={**self.service.environment, "PYTHONUNBUFFERED": "1"},
            pass_fds=self.service.inherits,
            umask=self.service.umask,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def _copy_output(self) -> None:
        output: IO[bytes] | None = self._popen.stdout
        assert output is not None
        with output:
            for line in output:
                self._log.write(self.service.name, line.decode("utf-8", "replace"))
