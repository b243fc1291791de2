"""The compose files: what is set on the host arrives, workers can be scaled, containers may do little, and compose
itself accepts the files."""

import json
import os
import re
import subprocess
import sys
import tomllib
from typing import Any

import pytest

from settings import Settings, load_settings
from stack.process import ROOT
from store.broker import broker_settings
from tests.compose import client, judgement, run, services
from tests.stack.ready import ready_server

FILES = ("docker-compose.yml", "docker-compose.gpu.yml")
WATCHING = "docker-compose.monitoring.yml"
KEYS = {"CELERITY_API_KEYS": "a-key"}
# Folders of the image. MODELS_DIR, or else CELERITY_MODELS_DIR, is the folder of the host that is seen as the models'.
OF_THE_IMAGE = {"DATA_DIR", "CELERITY_MODELS_DIR", "CELERITY_KERNELS_DIR"}
needs_compose = pytest.mark.skipif(client() is None, reason="compose is not installed")


@pytest.fixture(scope="module")
def main() -> dict[str, Any]:
    return services(FILES[:1])


def made_of(environment: dict[str, str], *files: str) -> dict[str, Any]:
    """The services as compose would start them with an environment."""
    options = [part for file in files or FILES[:1] for part in ("-f", file)]
    # The file .env of a checkout is the user's.
    words = [*options, "--env-file", os.devnull, "config", "--format", "json"]
    answer = run(words, {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], **KEYS, **environment})
    assert answer.returncode == 0, answer.stderr
    made: dict[str, Any] = json.loads(answer.stdout)["services"]
    return made


@pytest.mark.parametrize("file", FILES)
def test_every_setting_is_one_that_celerity_knows(file: str) -> None:
    for service in services([file]).values():
        environment = service.get("environment", {})
        # Without a value, or with one in ${}, it is the host's.
        literal = {name: "" if not value or value.startswith("${") else value for name, value in environment.items()}
        load_settings(literal)  # refuses a name or a value that it does not know


@pytest.mark.parametrize("service", ["api", "worker"])
def test_every_setting_is_passed_on(main: dict[str, Any], service: str) -> None:
    settings = {f"CELERITY_{name.upper()}" for name in Settings.__struct_fields__ if name != "data_dir"}
    passed = {name for name, value in main[service]["environment"].items() if not value or f"${{{name}:" in value}
    assert settings - OF_THE_IMAGE - passed == set()


def test_what_the_documentation_says_of_buckets_traces_and_proxies_is_passed_on(main: dict[str, Any]) -> None:
    pages = "".join(page.read_text() for page in (ROOT / "README.md", ROOT / "docs" / "operations.md"))
    named = set(re.findall(r"\b(?:(?:AWS|HF|OTEL|GOMP|OMP)_[A-Z_]+[A-Z]|[A-Z]+_PROXY|SSL_CERT_FILE)\b", pages))
    assert {"HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "SSL_CERT_FILE", "OMP_NUM_THREADS"} <= named
    # Where a host keeps what it fetched; a container has a folder of its own.
    assert named - {"HF_HOME"} <= set(main["worker"]["environment"])


def test_the_api_is_asked_whether_it_is_ready_without_the_proxy(main: dict[str, Any]) -> None:
    with ready_server() as port:
        _, _, *options = main["api"]["healthcheck"]["test"]
        options[-1] = options[-1].replace("127.0.0.1:8000", f"127.0.0.1:{port}")
        environment = {"HTTP_PROXY": "http://127.0.0.1:1", "PATH": os.environ["PATH"]}
        subprocess.run([sys.executable, *options], env=environment, check=True, timeout=30)


@needs_compose
def test_what_is_set_on_the_host_arrives_and_what_is_not_stays_away() -> None:
    given = {
        "CELERITY_PUBLIC_URL": "https://rl.example",
        "CELERITY_MAX_RATE_PER_KEY": "5",
        "CELERITY_REDIS_URL": "redis://elsewhere:6379/1",
        "AWS_ENDPOINT_URL": "http://minio:9000",
        "HF_TOKEN": "hf_1",
        "HTTPS_PROXY": "http://proxy:3128",
        "OMP_NUM_THREADS": "2",
    }
    for service in ("api", "worker"):
        assert made_of(given)[service]["environment"].items() >= given.items()
        without = {name: value for name, value in made_of({})[service]["environment"].items() if value is not None}
        assert without == KEYS | {"CELERITY_REDIS_URL": "redis://valkey:6379/0"}


@needs_compose
@pytest.mark.parametrize("name", ["MODELS_DIR", "CELERITY_MODELS_DIR"])
def test_the_models_folder_of_the_host_is_seen_and_never_written(name: str) -> None:
    for service in ("api", "worker"):
        volumes = {volume["target"]: volume for volume in made_of({name: "/srv/models"})[service]["volumes"]}
        assert (volumes["/models"]["source"], volumes["/models"]["read_only"]) == ("/srv/models", True)


@needs_compose
def test_one_sentence_says_what_to_do_when_there_are_no_api_keys() -> None:
    told = judgement(["--env-file", os.devnull], {"CELERITY_API_KEYS": ""}).strip()
    assert told.count("\n") == 0 and "put a long random word of your own into .env first, as CELERITY_API_KEYS=" in told


@needs_compose
@pytest.mark.parametrize(
    ("files", "image", "torch"), [(FILES[:1], "celerity", "cpu"), (FILES, "celerity:cuda", "cuda")]
)
def test_one_service_builds_the_image_of_both(files: tuple[str, ...], image: str, torch: str) -> None:
    made = made_of({}, *files)
    assert made["worker"]["image"] == made["api"]["image"] == image
    assert [name for name, service in made.items() if "build" in service] == ["worker"]
    assert made["worker"]["build"]["args"] == {"TORCH_BUILD": torch}
    assert made_of({"TORCH_BUILD": "cu130"}, *files)["worker"]["build"]["args"] == {"TORCH_BUILD": "cu130"}


@needs_compose
def test_a_worker_may_be_given_limits() -> None:
    worker = made_of({"WORKER_CPUS": "1.5", "WORKER_MEMORY": "4g"})["worker"]
    assert (worker["cpus"], int(worker["mem_limit"])) == (1.5, 4 << 30)


def test_workers_can_be_scaled(main: dict[str, Any]) -> None:
    assert not {"container_name", "ports", "hostname"} & set(main["worker"])


def test_only_the_api_is_published_and_only_on_this_host(main: dict[str, Any]) -> None:
    assert {name: service["ports"] for name, service in main.items() if "ports" in service} == {
        "api": ["127.0.0.1:${PORT:-8000}:8000"]
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


@pytest.mark.parametrize("name", ["valkey", "worker", "api"])
def test_a_container_may_do_little_and_is_watched(main: dict[str, Any], name: str) -> None:
    service = main[name]
    assert service["read_only"] and service["cap_drop"] == ["ALL"] and not service.get("privileged")
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["healthcheck"]["test"][0] == "CMD"


def test_an_image_gets_the_rooms_and_nothing_else_that_lies_in_the_folder() -> None:
    first, *rest = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    allowed = {line[1:] for line in rest if line.startswith("!")}
    rooms = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["root_packages"]
    assert first == "*" and "**/__pycache__" in rest
    folders = {room.removeprefix("celerity_") for room in rooms}
    assert allowed == folders | {
        "logs.py", "settings", "constraints.txt", "requirements.txt", "requirements-model.txt",
        "requirements-torch.txt", "requirements-traces.txt",
    }  # fmt: skip
    assert [name for name in allowed if not (ROOT / name).exists()] == []


@needs_compose
@pytest.mark.parametrize("files", [FILES[:1], FILES, (FILES[0], WATCHING)])
def test_compose_accepts_the_files(files: tuple[str, ...]) -> None:
    options = [part for file in files for part in ("-f", file)]
    assert judgement(options, KEYS) == ""
