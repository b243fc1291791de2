"""A compose project of the tests' own, on the engine that DOCKER_HOST leads to."""

import os
import subprocess
import time
from collections.abc import Callable
from typing import Any

import httpx2

from celerity_client import Client
from stack.address import free_port
from tests import compose
from tests.waiting import eventually

NAME, IMAGE, KEY = "celerity-test", "celerity", "a-key-of-the-tests"
# What a worker may have of the machine.
WORKER_MEMORY = 3 << 30
READY_SECONDS = 180.0


class Project:
    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.client = Client(self.url, KEY, retry_seconds=READY_SECONDS)
        # Settings of whoever runs the tests are not theirs.
        mine = {name: value for name, value in os.environ.items() if not name.startswith("CELERITY_")}
        self._environment = {
            **mine,
            "CELERITY_API_KEYS": KEY,
            "PORT": str(self.port),
            "WORKER_MEMORY": str(WORKER_MEMORY),
            "COMPOSE_PROJECT_NAME": NAME,
        }

    def compose(self, *words: str) -> str:
        """What a compose command says, which must have succeeded."""
        answer = compose.run(["--env-file", os.devnull, *words], self._environment)
        assert answer.returncode == 0, f"{words}: {answer.stderr[-4000:]}"
        return answer.stdout

    def build(self) -> float:
        """Seconds."""
        return seconds(lambda: self.compose("build"))

    def up(self, workers: int) -> float:
        """Seconds until a session could be created."""

        def start() -> None:
            self.compose("up", "--detach", "--no-build", "--scale", f"worker={workers}")
            eventually(self.is_ready, seconds=READY_SECONDS)
            eventually(lambda: len(self.client.workers()) == workers, seconds=READY_SECONDS)

        return seconds(start)

    def is_ready(self) -> bool:
        try:
            return httpx2.get(f"{self.url}/readyz").status_code == 200
        except httpx2.TransportError:
            return False

    def down(self) -> None:
        """Containers, network and volumes."""
        self.compose("down", "--volumes", "--timeout", "60")

    def containers(self, *services: str) -> list[str]:
        """Ids of those that run."""
        return self.compose("ps", "--quiet", *services).split()

    def holder(self, session_id: str) -> str:
        """The container whose worker holds a session: a worker's id begins with its host's name."""
        (worker,) = [each for each in self.client.workers() if session_id in _ids(each)]
        return str(worker["worker_id"]).partition("-")[0]


def docker(*words: str) -> str:
    answer = subprocess.run(["docker", *words], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, f"{words}: {answer.stderr}"
    return answer.stdout.strip()


def in_image(script: str) -> subprocess.CompletedProcess[str]:
    """A shell's script in a container that is as little writable as those of compose."""
    command = [
        "docker",
        "run",
        "--rm",
        "--read-only",
        "--cap-drop",
        "ALL",
        "--tmpfs",
        "/tmp",
        "--volume",
        "/data",
        IMAGE,
        "sh",
        "-c",
        script,
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def seconds(act: Callable[[], Any]) -> float:
    began = time.monotonic()
    act()
    return time.monotonic() - began


def _ids(worker: dict[str, Any]) -> list[str]:
    return [session["session_id"] for session in worker["sessions"]]
