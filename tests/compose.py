"""Docker compose's own judgement of the files, where its client is; no engine is needed for that."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from stack.process import ROOT

MAIN = "docker-compose.yml"


def compose_exists() -> bool:
    return (
        bool(shutil.which("docker"))
        and subprocess.run(["docker", "compose", "version"], capture_output=True).returncode == 0
    )


def judgement(options: Sequence[str], environment: Mapping[str, str]) -> str:
    """What compose has against the files that the options name; nothing when it accepts them."""
    command = ["docker", "compose", *options, "config", "--quiet"]
    given = {**os.environ, **environment}
    answer = subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True, check=False)
    return answer.stderr if answer.returncode else ""


def services(files: Iterable[str]) -> dict[str, Any]:
    """The services of some files, anchors resolved."""
    found: dict[str, Any] = {}
    for file in files:
        found |= yaml.safe_load((ROOT / file).read_text())["services"]
    return found


def required_variables(files: Iterable[str]) -> set[str]:
    """Those without which compose refuses the files."""
    return {name for file in files for name in re.findall(r"\$\{(\w+):?\?", (ROOT / file).read_text())}
