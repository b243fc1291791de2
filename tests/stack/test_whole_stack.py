"""The real Valkey, worker and API under `python -m cli`, as a user starts and ends them."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx
import psutil
import pytest

from stack.address import free_port
from stack.process import ROOT
from stack.running import running_stack
from testing.tiny_model import make_tiny_model
from tests.stories.client import Session, is_ready
from tests.waiting import TIMEOUT_SECONDS, eventually, is_running

HELD = "another stack runs in {data} (http://127.0.0.1:{port}, pid {pid}): stop it, or choose another DATA_DIR"
STACK = [sys.executable, "-m", "cli"]


def environment(data_dir: Path, **more: str) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CELERITY_")}
    return clean | {"DATA_DIR": str(data_dir), "PORT": str(free_port()), **more}


class Up:
    """A running `python -m cli up`, its log in a file; with --json, what it says beside that in another."""

    def __init__(self, given: dict[str, str], log: Path, *options: str) -> None:
        self.environment, self._log, self.said = given, log, log.with_suffix(".json")
        command = [*STACK, "up", *options]
        with log.open("w") as errors, self.said.open("w") as said:
            output = said if "--json" in options else errors
            self._popen = subprocess.Popen(command, cwd=ROOT, env=given, stdout=output, stderr=errors)
        self.pid = self._popen.pid
        eventually(lambda: "ready: http" in self.log or self._popen.poll() is not None, self.describe)
        assert self._popen.poll() is None, self.describe()
        self.children = psutil.Process(self.pid).children(recursive=True)

    @property
    def log(self) -> str:
        return self._log.read_text()

    def describe(self) -> str:
        return f"exit code {self._popen.poll()}, log:\n{self.log}"

    def pid_of(self, name: str) -> int:
        return int(self.log.split(f"{name} started, pid ")[1].split()[0])

    def has_started_again(self, name: str) -> bool:
        return self.log.count(f"{name} started, pid") == 2

    def end(self) -> int:
        """Waits for the end of the supervisor and of all that it had started; its exit code."""
        code = self._popen.wait(TIMEOUT_SECONDS)
        eventually(lambda: not any(is_running(child) for child in self.children), self.describe)
        return code

    def kill(self) -> None:
        self._popen.kill()
        self._popen.wait()


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    up = Up(environment(tmp_path / "data"), tmp_path / "up.log")
    yield up
    up.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_everything_in_order(up: Up, number: signal.Signals) -> None:
    os.kill(up.pid, number)
    assert up.end() == 0, up.describe()
    ended = re.findall(r"(\w+) ended, exit code 0", up.log)
    assert ended == ["api", "worker", "valkey"], up.describe()


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ((), HELD),
        (("PORT",), HELD),
        (("DATA_DIR",), "cannot listen on 127.0.0.1:{port} (Address already in use): choose another PORT"),
    ],
)
def test_a_second_stack_is_refused_with_a_line(up: Up, tmp_path: Path, own: tuple[str, ...], expected: str) -> None:
    """Of its own it has the port, the data folder, or neither."""
    given = up.environment | {name: environment(tmp_path / "others")[name] for name in own}
    second = subprocess.run([*STACK, "up"], cwd=ROOT, env=given, capture_output=True, text=True, check=False)
    told = expected.format(data=tmp_path / "data", port=up.environment["PORT"], pid=up.pid)
    assert (second.returncode, second.stdout, second.stderr) == (2, "", f"celerity: {told}\n")


def test_a_stack_is_started_again_on_its_data_and_port(up: Up, tmp_path: Path) -> None:
    os.kill(up.pid, signal.SIGINT)
    assert up.end() == 0
    again = Up(up.environment, tmp_path / "again.log")
    os.kill(again.pid, signal.SIGINT)
    assert again.end() == 0, again.describe()
    assert "Traceback" not in up.log + again.log


def test_a_service_that_is_killed_is_started_again_and_what_was_there_still_is(tmp_path: Path) -> None:
    make_tiny_model(tmp_path / "models" / "tiny")
    given = environment(tmp_path / "data", CELERITY_MODELS_DIR=str(tmp_path / "models"))
    up = Up(given, tmp_path / "up.log", "--json")
    url = f"http://127.0.0.1:{given['PORT']}"
    assert json.loads(up.said.read_text()) == {"url": url, "docs": f"{url}/docs"}
    with httpx.Client(base_url=url, timeout=60.0) as http:
        session = Session(http)
        before = session.sample([1, 2], max_tokens=2, seed=1)
        time.sleep(1.1)  # the append-only file is synced every second
        for name in ("valkey", "worker", "api"):
            os.kill(up.pid_of(name), signal.SIGKILL)
            eventually(partial(up.has_started_again, name), up.describe)
            assert up.log.count(f"{name} ended with exit code 137; starting it again in 1 s") == 1
        eventually(lambda: is_ready(http), up.describe)
        assert session.sample([1, 2], max_tokens=2, seed=1) == before
    up.children = psutil.Process(up.pid).children(recursive=True)
    os.kill(up.pid, signal.SIGINT)
    assert up.end() == 0, up.describe()


def test_a_service_that_ends_before_the_stack_is_ready_ends_it_with_its_code(tmp_path: Path) -> None:
    """Who started it is there to read why."""
    given = environment(tmp_path / "data", CELERITY_DEVICE="cuda:99")
    done = subprocess.run([*STACK, "up"], cwd=ROOT, env=given, capture_output=True, text=True, check=False)
    assert (done.returncode, "worker ended unexpectedly with exit code 1" in done.stdout) == (1, True), done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")
def test_nothing_outlives_a_supervisor_that_is_killed(up: Up) -> None:
    os.kill(up.pid, signal.SIGKILL)
    assert up.end() == -signal.SIGKILL


def test_an_open_address_without_keys_is_refused_with_a_sentence(tmp_path: Path) -> None:
    answer = subprocess.run(
        [*STACK, "up"], cwd=ROOT, env=environment(tmp_path, HOST="0.0.0.0"), capture_output=True, text=True, check=False
    )
    assert answer.returncode == 2
    assert answer.stderr == "celerity: HOST 0.0.0.0 can be reached from other hosts: set CELERITY_API_KEYS first\n"


def test_a_command_runs_against_a_ready_stack_and_gives_its_code(tmp_path: Path) -> None:
    """The command exits with 7 when the stack it was pointed at is ready."""
    code = "import sys, urllib.request; sys.exit(7 if urllib.request.urlopen(sys.argv[1]).status == 200 else 1)"
    command = [sys.executable, "-c", code, "{url}/readyz"]
    answer = subprocess.run(
        [*STACK, "run", "--log", str(tmp_path / "its.log"), "--", *command],
        cwd=ROOT,
        env=environment(tmp_path / "data"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 7, answer.stderr
    assert "the command ended with exit code 7" in answer.stderr
    assert "valkey ended, exit code 0" in (tmp_path / "its.log").read_text()


def test_the_keys_command_finds_the_stack_that_runs_in_its_data_folder(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "cli", "keys", "create", "--name", "alice", "--json"]
    with running_stack(tmp_path) as stack:
        given = environment(tmp_path)
        made = subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stderr
        sessions = f"{stack.url}/v1/rl/training-sessions"
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(sessions)
        authorization = {"Authorization": f"Bearer {json.loads(made.stdout)['key']}"}
        with urllib.request.urlopen(urllib.request.Request(sessions, headers=authorization)) as answer:
            assert json.load(answer) == []
    assert not list((tmp_path / "valkey").glob("url"))


def test_two_workers_serve_one_stack(tmp_path: Path) -> None:
    with running_stack(tmp_path, workers=2) as stack:
        assert list(stack.processes) == ["valkey", "worker-1", "worker-2", "api"]
        os.kill(stack.processes["worker-1"].pid, signal.SIGKILL)
        eventually(lambda: stack.processes["worker-1"].poll() is not None, lambda: "worker-1 runs on")
        stack.run(stack.processes["worker-1"].service)
        stack.wait_ready()
