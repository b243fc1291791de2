"""Docker compose's own judgement of the files, where its client is; no engine is needed for that."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import yaml

from stack.process import ROOT

MAIN = "docker-compose.yml"


# As a plugin of the docker client, or as a program of its own.
CLIENTS = (("docker", "compose"), ("docker-compose",))


@cache
def client() -> tuple[str, ...] | None:
    """The command that compose is here; None where it is not installed."""
    return next(filter(_answers, CLIENTS), None)


def _answers(command: tuple[str, ...]) -> bool:
    return bool(
        shutil.which(command[0])
        and subprocess.run([*command, "version"], capture_output=True, check=False).returncode == 0
    )


def judgement(options: Sequence[str], environment: Mapping[str, str]) -> str:
    """What compose has against the files that the options name; nothing when it accepts them."""
    answer = run([*options, "config", "--quiet"], {**os.environ, **environment})
    return answer.stderr if answer.returncode else ""


def run(words: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Compose in the checkout's folder, with that environment alone."""
    command = client()
    assert command, "compose is not installed"
    return subprocess.run([*command, *words], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def services(files: Iterable[str]) -> dict[str, Any]:
    """The services of some files, anchors resolved."""
    found: dict[str, Any] = {}
    for file in files:
        found |= yaml.safe_load((ROOT / file).read_text())["services"]
    return found


def required_variables(files: Iterable[str]) -> set[str]:
    """Those without which compose refuses the files."""
    return {name for file in files for name in re.findall(r"\$\{(\w+):?\?", (ROOT / file).read_text())}
