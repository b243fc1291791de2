"""The compose files: their settings exist, workers can be scaled, and compose itself accepts them."""

import os
import shutil
import subprocess
from typing import Any

import pytest
import yaml

from settings import load_settings
from stack.process import ROOT

FILES = ("docker-compose.yml", "docker-compose.gpu.yml")
WATCHING = "docker-compose.monitoring.yml"


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    """The services of the main file, its anchors resolved."""
    found: dict[str, Any] = yaml.safe_load((ROOT / FILES[0]).read_text())["services"]
    return found


def compose_exists() -> bool:
    return (
        bool(shutil.which("docker"))
        and subprocess.run(["docker", "compose", "version"], capture_output=True).returncode == 0
    )


@pytest.mark.parametrize("file", FILES)
def test_every_setting_is_one_that_celerity_knows(file: str) -> None:
    for service in yaml.safe_load((ROOT / file).read_text())["services"].values():
        environment = service.get("environment", {})
        # Without a value, or with one in ${}, it is the host's.
        literal = {name: "" if not value or value.startswith("${") else value for name, value in environment.items()}
        load_settings(literal)  # refuses a name or a value that it does not know


def test_workers_can_be_scaled(services: dict[str, Any]) -> None:
    assert not {"container_name", "ports", "hostname"} & set(services["worker"])


def test_only_the_api_is_published_and_only_on_this_host(services: dict[str, Any]) -> None:
    assert {name: service["ports"] for name, service in services.items() if "ports" in service} == {
        "api": ["127.0.0.1:8000:8000"]
    }


def test_valkey_keeps_what_it_accepted(services: dict[str, Any]) -> None:
    command = services["valkey"]["command"]
    assert "--appendonly yes" in command and "--maxmemory-policy noeviction" in command


def test_the_api_and_the_workers_share_objects_and_models(services: dict[str, Any]) -> None:
    assert services["api"]["volumes"] == services["worker"]["volumes"]


@pytest.mark.skipif(not compose_exists(), reason="needs the docker client with compose")
@pytest.mark.parametrize("files", [FILES[:1], FILES, (FILES[0], WATCHING)])
def test_compose_accepts_the_files(files: tuple[str, ...]) -> None:
    command = ["docker", "compose", *(part for file in files for part in ("-f", file)), "config", "--quiet"]
    keys = {"CELERITY_API_KEYS": "a-key"}
    answer = subprocess.run(command, cwd=ROOT, env={**os.environ, **keys}, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
