"""`make test-docker`: the image and the compose files on a real Docker engine. A session is trained while its container
is killed, and ends with the numbers of one that was left alone."""

import json
import platform
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from celerity_client import Session, example
from stack.process import ROOT
from tests.docker.project import IMAGE, NAME, READY_SECONDS, WORKER_MEMORY, Project, docker, in_image, seconds
from tests.waiting import eventually

MODEL = "HuggingFaceTB/SmolLM2-135M-Instruct"
BASE = "python:3.11-slim"
PROMPT = [504, 6330, 314, 216]
SAMPLES = [example([*PROMPT, *range(200 + 16 * row, 216 + 16 * row)], [0] * 4 + [1] * 16) for row in range(4)]
STEPS = 4
FIGURES = ROOT / "artifacts" / "docker" / "figures.json"

pytestmark = [pytest.mark.docker, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def figures() -> Iterator[dict[str, float | str]]:
    """What is measured on the way, for docs/operations.md."""
    found: dict[str, float | str] = {"processor": _processor()}
    yield found
    FIGURES.parent.mkdir(parents=True, exist_ok=True)
    FIGURES.write_text(json.dumps(found, indent=2) + "\n")


@pytest.fixture(scope="module")
def project(figures: dict[str, float | str]) -> Iterator[Project]:
    """Built, and taken down whatever happens."""
    project = Project()
    figures["build, s"] = round(project.build())
    yield project
    project.down()


@pytest.fixture
def stack(project: Project) -> Iterator[Callable[[int], float]]:
    """Starts one of so many workers, which is gone after the test; its logs are shown when that fails."""
    yield project.up
    print(project.compose("logs", "--no-color", "--tail", "60"))
    project.down()


@pytest.mark.usefixtures("project")
def test_the_image_holds_what_runs_and_no_compiler(figures: dict[str, float | str]) -> None:
    size, base = (int(docker("image", "inspect", "--format", "{{.Size}}", name)) for name in (IMAGE, BASE))
    figures["image, MB above its base"] = round((size - base) / 1e6)
    assert size - base < 2e9
    told = in_image("id -u; ls; ! command -v g++ && python -c 'import torch; print(torch.version.cuda)'")
    user, *files, cuda = told.stdout.split()
    assert user == "1000" and cuda == "None", told
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert set(files) == allowed


@pytest.mark.usefixtures("project")
def test_without_the_right_to_write_the_kernels_are_there_and_traces_can_be_had() -> None:
    told = in_image("export CELERITY_TRACES=true; celerity doctor --json")
    findings = {finding["what"]: finding for finding in json.loads(told.stdout)}
    assert not findings["kernels"]["advice"], findings


def test_a_worker_that_is_killed_comes_back_and_nothing_is_lost(
    project: Project, stack: Callable[[int], float], figures: dict[str, float | str]
) -> None:
    figures["ready with one worker, s"] = round(stack(1), 1)
    eventually(lambda: all(_is_healthy(id) for id in project.containers()), seconds=READY_SECONDS)
    (worker,) = project.client.workers()
    assert 0 < worker["free_bytes"] < WORKER_MEMORY

    def kill(session: Session) -> None:
        # The init of the container stays, and ends it when its child is gone; the engine then starts it again.
        subprocess.run(["docker", "exec", project.holder(session.id), "sh", "-c", "kill -9 -1"], check=False)

    figures["recovery of the only worker, s"] = _compare_with_the_undisturbed(project, kill)


def test_the_sessions_of_a_killed_container_go_on_in_another(
    project: Project, stack: Callable[[int], float], figures: dict[str, float | str]
) -> None:
    figures["ready with two workers, s"] = round(stack(2), 1)
    left: list[str] = []

    def kill(session: Session) -> None:
        left.append(project.holder(session.id))
        docker("kill", left[0])
        assert len(project.containers("worker")) == 1

    figures["recovery by another worker, s"] = _compare_with_the_undisturbed(project, kill)
    assert not project.containers("worker")[0].startswith(left[0])


def test_what_is_taken_down_leaves_nothing(project: Project, stack: Callable[[int], float]) -> None:
    stack(1)
    project.down()
    label = f"label=com.docker.compose.project={NAME}"
    for kind in (["ps", "--all"], ["volume", "ls"], ["network", "ls"]):
        assert docker(*kind, "--quiet", "--filter", label) == ""


def _compare_with_the_undisturbed(project: Project, kill: Callable[[Session], None]) -> float:
    """Two sessions from one checkpoint do the same, the second with a kill in the middle. Seconds from that to the next
    result."""
    origin = project.client.create_session(MODEL, rank=8, alpha=16, dropout=0)
    checkpoint = origin.save("training").result().checkpoint_id
    undisturbed, disturbed = (project.client.create_session(MODEL, checkpoint_id=checkpoint) for _ in range(2))
    expected, _ = _train(undisturbed, lambda _: None)
    found, recovery = _train(disturbed, kill)
    assert found == expected
    assert disturbed.read()["step"] == STEPS
    return round(recovery, 1)


def _train(session: Session, disturb: Callable[[Session], None]) -> tuple[list[object], float]:
    """The losses, and a sample after the last step; all is accepted before the first result is waited for."""
    operations = [(session.cross_entropy(SAMPLES), session.optim_step(1e-3)) for _ in range(STEPS)]
    sampling = session.sample(PROMPT, 2, max_tokens=16, seed=1)
    first = operations[0][0].result().loss
    disturb(session)
    recovery = seconds(operations[-1][1].result)
    losses = [trained.result().loss for trained, _ in operations]
    assert losses[0] == first and losses[-1] < first
    return [losses, sampling.result()], recovery


def _is_healthy(container: str) -> bool:
    return docker("inspect", "--format", "{{.State.Health.Status}}", container) == "healthy"


def _processor() -> str:
    names = [line.partition(": ")[2] for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line]
    return f"{len(names)} x {names[0]}" if names else platform.machine()
