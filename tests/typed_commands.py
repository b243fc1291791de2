"""Whether a command that a page shows could be typed: its program, its options and its settings exist."""

import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from itertools import pairwise

import click

from cli.program import celerity
from settings import load_settings
from stack.process import ROOT
from tests import compose

ASSIGNMENT = re.compile(r"([A-Z_]+)=(.*)", re.DOTALL)
CELERITY = ("celerity", ".venv/bin/celerity")
PYTHON = ("python", ".venv/bin/python")
# What only the reader knows.
ELLIPSIS = "..."


def check(*lines: str) -> None:
    """Raises when a command could not be typed anywhere. What one line exports, those after it have; a sentence may
    name a group of commands, or end in an ellipsis."""
    exported: dict[str, str] = {}
    for line in lines:
        words = [word for word in shlex.split(line, comments=True) if word != ELLIPSIS]
        if words[:1] == ["export"]:
            exported |= _assignments(words[1:])
        else:
            environment = exported | _assignments(words)
            load_settings(environment)
            _check_program(words, environment)
    load_settings(exported)


def _assignments(words: list[str]) -> dict[str, str]:
    """Takes them from the front."""
    found = {}
    while words and (assigned := ASSIGNMENT.fullmatch(words[0])):
        found[assigned[1]] = assigned[2]
        words.pop(0)
    return found


def _check_program(words: list[str], environment: dict[str, str]) -> None:
    match words:
        case ["make", *rest]:
            _check_make(rest)
        case ["docker", "compose", *rest]:
            _check_compose(rest, environment)
        case ["docker", "build", *rest]:
            _check_image(rest)
        case [program, *rest] if program in CELERITY:
            _check_celerity(rest)
        case [program, "-m", module, *rest] if program in PYTHON:
            _check_module(module, rest)
        case [program, *_]:
            assert "/" in program and (ROOT / program).stat().st_mode & 0o100, f"{program} is not known"


def _check_make(words: list[str]) -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE)
    variables = re.findall(r"^(\w+) \?=", makefile, re.MULTILINE)
    for word in words:
        assert word in targets or (word.partition("=")[0] in variables and "=" in word), word


def _check_celerity(words: list[str]) -> None:
    command: click.Command = celerity
    while isinstance(command, click.Group) and words and words[0] in command.commands:
        command = command.commands[words.pop(0)]
    if words or not isinstance(command, click.Group):
        # Parses, and runs nothing. Raises click's UsageError.
        command.make_context(command.name, words)


def _check_module(module: str, words: list[str]) -> None:
    if module == "cli":
        _check_celerity(words)
        return
    assert find_spec(module), module
    if module == "pip":
        assert all((ROOT / file).is_file() for option in ("-r", "-c") for file in _values(words, option))
    options = [word for word in words if word.startswith("--")]
    if options:
        told = subprocess.run([sys.executable, "-m", module, "--help"], cwd=ROOT, capture_output=True, text=True)
        assert [option for option in options if option not in told.stdout] == []


def _check_compose(words: list[str], environment: dict[str, str]) -> None:
    if words[0] == "exec":
        _, service, *command = words
        assert service in compose.services([compose.MAIN])
        _check_program(command, environment)
        return
    options, rest = words[: words.index("up")], words[words.index("up") + 1 :]
    files = _values(options, "-f") or [compose.MAIN]
    services = compose.services(files)
    assert {value.partition("=")[0] for value in _values(rest, "--scale")} <= set(services)
    profiles = {profile for service in services.values() for profile in service.get("profiles", ())}
    assert set(_values(options, "--profile")) <= profiles
    assert compose.required_variables(files) <= set(environment)
    if compose.client():
        assert compose.judgement(options, environment) == ""


def _check_image(words: list[str]) -> None:
    dockerfile = (ROOT / "Dockerfile").read_text()
    stages = re.findall(r"^FROM \S+ AS (\w+)$", dockerfile, re.MULTILINE)
    arguments = re.findall(r"^ARG (\w+)", dockerfile, re.MULTILINE)
    assert set(_values(words, "--target")) <= set(stages)
    assert {value.partition("=")[0] for value in _values(words, "--build-arg")} <= set(arguments)


def _values(words: list[str], option: str) -> list[str]:
    return [value for name, value in pairwise(words) if name == option]
