"""What is refused before anything starts, and where the API is told to listen."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from stack.address import free_port, is_loopback
from stack.plan import read_plan


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def environment(**more: str) -> dict[str, str]:
    return {"PORT": str(free_port()), **more}


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_an_open_address_is_refused_without_keys(host: str) -> None:
    with pytest.raises(ValueError, match="set CELERITY_API_KEYS"):
        read_plan(environment(HOST=host))


def test_an_open_address_is_served_with_keys_and_reached_on_this_host() -> None:
    given = environment(HOST="0.0.0.0", CELERITY_API_KEYS="a-key")
    plan = read_plan(given)
    assert plan.bind == f"0.0.0.0:{given['PORT']}"
    assert plan.url == f"http://127.0.0.1:{given['PORT']}"


def test_an_empty_list_of_keys_is_no_key() -> None:
    with pytest.raises(ValueError, match="set CELERITY_API_KEYS"):
        read_plan(environment(HOST="0.0.0.0", CELERITY_API_KEYS=" , "))


def test_the_default_address_is_loopback() -> None:
    assert read_plan(environment()).bind.startswith("127.0.0.1:")


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("0.0.0.0", False)],
)
def test_loopback_is_told_from_the_rest(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


@pytest.mark.parametrize("port", ["0", "65536", "-1", "8000.0", "http", "²"])
def test_a_wrong_port_is_refused(port: str) -> None:
    with pytest.raises(ValueError, match="PORT must be a number"):
        read_plan({"PORT": port})


def test_a_taken_port_is_refused(taken: int) -> None:
    with pytest.raises(ValueError, match=f"cannot listen on 127.0.0.1:{taken}.*another PORT"):
        read_plan({"PORT": str(taken)})


def test_a_name_without_an_address_is_refused() -> None:
    with pytest.raises(ValueError, match=r"HOST 'no\.such\.host\.invalid'"):
        read_plan(environment(HOST="no.such.host.invalid"))


def test_a_misspelt_setting_is_refused_with_its_name() -> None:
    with pytest.raises(ValueError, match=r"CELERITY_HORIZONS.*did you mean CELERITY_HORIZON"):
        read_plan(environment(CELERITY_HORIZONS="10"))


def test_no_worker_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one worker"):
        read_plan(environment(), workers=0)


def test_paths_do_not_depend_on_the_folder_of_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plan = read_plan(environment(DATA_DIR="data", CELERITY_MODELS_DIR="models"))
    assert plan.environment["DATA_DIR"] == str(tmp_path / "data")
    assert plan.environment["CELERITY_MODELS_DIR"] == str(tmp_path / "models")


def test_a_redis_of_the_users_replaces_the_embedded_one() -> None:
    assert read_plan(environment()).embeds_valkey
    assert not read_plan(environment(CELERITY_REDIS_URL="redis://127.0.0.1:1/0")).embeds_valkey
