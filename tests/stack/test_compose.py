"""The compose files: their settings exist, workers can be scaled, and compose itself accepts them."""

from typing import Any

import pytest

from settings import Settings, load_settings
from store.broker import broker_settings
from tests.compose import client, judgement, services

FILES = ("docker-compose.yml", "docker-compose.gpu.yml")
WATCHING = "docker-compose.monitoring.yml"


@pytest.fixture(scope="module")
def main() -> dict[str, Any]:
    return services(FILES[:1])


@pytest.mark.parametrize("file", FILES)
def test_every_setting_is_one_that_celerity_knows(file: str) -> None:
    for service in services([file]).values():
        environment = service.get("environment", {})
        # Without a value, or with one in ${}, it is the host's.
        literal = {name: "" if not value or value.startswith("${") else value for name, value in environment.items()}
        load_settings(literal)  # refuses a name or a value that it does not know


def test_workers_can_be_scaled(main: dict[str, Any]) -> None:
    assert not {"container_name", "ports", "hostname"} & set(main["worker"])


def test_only_the_api_is_published_and_only_on_this_host(main: dict[str, Any]) -> None:
    assert {name: service["ports"] for name, service in main.items() if "ports" in service} == {
        "api": ["127.0.0.1:8000:8000"]
    }


def test_valkey_keeps_what_it_accepted(main: dict[str, Any]) -> None:
    command = main["valkey"]["command"]
    assert "--appendonly yes" in command and "--maxmemory-policy noeviction" in command


def test_the_api_and_the_workers_share_objects_and_models(main: dict[str, Any]) -> None:
    assert main["api"]["volumes"] == main["worker"]["volumes"]


def test_flower_looks_where_the_broker_keeps_its_queues() -> None:
    options = broker_settings(Settings().redis)["broker_transport_options"]
    (command,) = services([WATCHING])["flower"]["command"]
    assert f'broker_transport_options = {{"global_keyprefix": "{options["global_keyprefix"]}"}}' in command


@pytest.mark.skipif(client() is None, reason="compose is not installed")
@pytest.mark.parametrize("files", [FILES[:1], FILES, (FILES[0], WATCHING)])
def test_compose_accepts_the_files(files: tuple[str, ...]) -> None:
    options = [part for file in files for part in ("-f", file)]
    assert judgement(options, {"CELERITY_API_KEYS": "a-key"}) == ""
