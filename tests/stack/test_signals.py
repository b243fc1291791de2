"""The first signal and the second one, in a process of their own."""

import signal
import subprocess
import sys
from functools import partial

import pytest

from stack.process import ROOT

PROGRAM = """
import os, sys, time
from stack.signals import StopRequested, call_on_signals, raise_on_signals
raise_on_signals()
try:
    print("up", flush=True)
    time.sleep(600)
except StopRequested as request:
    call_on_signals(lambda: os._exit(3))
    print(request, flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_asks_and_the_second_does_not_wait(number: signal.Signals) -> None:
    command = [sys.executable, "-c", PROGRAM]
    # The tests themselves may run under nohup.
    listening = partial(signal.signal, signal.SIGHUP, signal.SIG_DFL)
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, preexec_fn=listening) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.send_signal(number)
        assert process.stdout.readline() == f"{number.name}\n"
        process.send_signal(number)
        assert process.wait(20) == 3


def test_under_nohup_the_end_of_the_terminal_is_no_request() -> None:
    command = ["nohup", sys.executable, "-c", PROGRAM]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "SIGTERM\n"
        process.kill()


IMPORTING = """
import signal, time
from stack.signals import silent_interrupt
with silent_interrupt():
    print("importing", flush=True)
    {inside}
try:
    print("at work", flush=True)
    time.sleep(600)
except KeyboardInterrupt:
    print("answered", flush=True)
"""


def test_ctrl_c_while_modules_are_imported_says_nothing_and_after_that_it_is_python_s() -> None:
    with _python(IMPORTING.format(inside="time.sleep(600)")) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == "importing\n"
        process.send_signal(signal.SIGINT)
        assert (process.wait(20), process.stderr.read()) == (-signal.SIGINT, "")
    with _python(IMPORTING.format(inside="pass")) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ["importing\n", "at work\n"]
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "answered\n" and process.wait(20) == 0


def _python(code: str) -> subprocess.Popen[str]:
    """The tests themselves may run where Ctrl-C is ignored."""
    listening = partial(signal.signal, signal.SIGINT, signal.default_int_handler)
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=pipe, stderr=pipe, text=True, preexec_fn=listening
    )
