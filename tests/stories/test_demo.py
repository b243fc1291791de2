"""The demo as `make demo` starts it, shortened: the bundled model, a server of its own, and what it leaves behind."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from models import bundled
from stack.address import free_port
from stack.process import ROOT
from tests.waiting import TIMEOUT_SECONDS, eventually, is_running

SHORT = {"steps": 2, "questions": 2, "samples": 3, "held-out": 2}
DEMO = [sys.executable, "-m", "examples.demo", "--tokenizer", str(bundled.DIRECTORY / bundled.NAME)]


def own_server(folder: Path, **options: float) -> list[str]:
    """The command."""
    told = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    run = [sys.executable, "-m", "cli", "run", "--log", str(folder / "stack.log"), "--"]
    return [*run, *DEMO, "--url", "{url}", "--output", str(folder), *told]


@pytest.fixture
def said(tmp_path: Path) -> Path:
    return tmp_path / "said.txt"


@pytest.fixture
def demo(tmp_path: Path, said: Path) -> Iterator[subprocess.Popen[bytes]]:
    """In a process group of its own, what it says in a file."""
    command = own_server(tmp_path, **SHORT | {"steps": 15})
    with said.open("w") as output:
        demo = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=output, start_new_session=True)
    yield demo
    demo.kill()
    demo.wait()


def test_it_trains_the_bundled_model_and_says_what_it_did(tmp_path: Path) -> None:
    answer = subprocess.run(own_server(tmp_path, **SHORT), cwd=ROOT, capture_output=True, text=True, check=False)
    assert answer.returncode in (0, 1), answer.stderr
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert (answer.returncode == 0) == (summary["reward_last"] > summary["reward_first"])
    assert answer.stdout.count("reward 0.") + answer.stdout.count("reward 1.") == summary["steps"] == 2
    assert 0 <= summary["accuracy_before"] <= 1
    assert 2 * 2 * 3 <= summary["tokens_trained"] <= 2 * 2 * 3 * 4
    assert summary["tokens_trained"] < summary["tokens_sampled"]
    assert (tmp_path / "reward.png").stat().st_size > 0
    assert "Traceback" not in answer.stderr


def test_a_machine_with_no_time_is_measured_does_a_step_and_says_that_it_is_too_slow(tmp_path: Path) -> None:
    """As slow a machine as there is: 0.1 s for everything."""
    command = own_server(tmp_path, seconds=0.1)
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "to sample and train on here: 16 steps of 4 questions x 4 replies, if there is time" in answer.stderr
    assert "The time is up after 1 of 16 steps." in answer.stderr
    assert answer.returncode == 1 and json.loads((tmp_path / "summary.json").read_text())["steps"] == 1
    assert "did not rise: this machine is too slow" in answer.stdout


@pytest.mark.parametrize("moment", ["loading the model", "step 1/15"])
def test_ctrl_c_ends_it_and_its_server_with_a_line_each(demo: subprocess.Popen[bytes], said: Path, moment: str) -> None:
    eventually(lambda: moment in said.read_text(), said.read_text, seconds=250)
    started = psutil.Process(demo.pid).children(recursive=True)
    assert {"valkey-server"} < {each.name() for each in started}
    os.killpg(demo.pid, signal.SIGINT)  # as a terminal does
    assert demo.wait(TIMEOUT_SECONDS) == 130, said.read_text()
    eventually(lambda: not any(is_running(each) for each in started), lambda: f"of {started} some run on")
    assert "Traceback" not in said.read_text()
    assert said.read_text().splitlines()[-1] == "celerity: SIGINT: the command and the stack have ended"


def test_without_a_server_it_says_so_in_a_line(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    command = [*DEMO, "--url", url, "--output", str(tmp_path)]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert answer.returncode == 2
    assert answer.stderr.splitlines()[-1].startswith(f"demo: no answer from {url}")
    assert "Traceback" not in answer.stderr
