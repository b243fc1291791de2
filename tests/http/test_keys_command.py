"""`celerity keys` as an operator runs it, beside a server that is up."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from settings import Settings
from store.store import Store
from tests.http.conftest import SESSIONS, Api

ROOT = Path(__file__).parents[2]


class Command:
    def __init__(self, redis_url: str, data_dir: Path) -> None:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("CELERITY_")}
        self.environment = {**clean, "CELERITY_REDIS_URL": redis_url, "DATA_DIR": str(data_dir)}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "cli", "keys", *arguments]
        return subprocess.run(command, cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False)

    def json(self, *arguments: str) -> Any:
        done = self.run(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def command(settings: Settings) -> Command:
    return Command(settings.redis_url, settings.data_dir)


def status(api: Api, key: str) -> int:
    return int(api.client.get(SESSIONS, headers={"Authorization": f"Bearer {key}"}).status_code)


def test_a_key_is_made_listed_and_revoked_under_a_running_server(api: Api, command: Command) -> None:
    made = command.json("create", "--name", "alice", "--max-sessions", "2", "--rate", "50")
    key = made.pop("key")
    assert (made["name"], made["max_sessions"], made["max_waiting"], made["rate"]) == ("alice", 2, None, 50.0)
    assert (status(api, key), status(api, "another")) == (200, 401)
    assert command.json("list") == [made]
    revoked = command.json("revoke", made["id"])
    assert revoked["revoked_at"] is not None
    assert status(api, key) == 401
    assert command.json("list") == [revoked]


def test_a_limit_of_bodies_is_one_that_can_be_kept(command: Command) -> None:
    made = command.json("create", "--name", "alice", "--max-body-bytes", "65536")
    assert made["max_body_bytes"] == 65536
    assert "max_body_bytes 50000000" in command.run("create", "--name", "bob", "--max-body-bytes", "50000000").stdout
    refused = command.run("create", "--name", "carol", "--max-body-bytes", "65535")
    assert (refused.returncode, "must be at least 65536, or 0" in refused.stderr) == (2, True)
    assert command.run("create", "--name", "carol", "--max-body-bytes", "-1").returncode == 2


def test_people_read_the_key_once_and_a_line_for_each(api: Api, command: Command) -> None:
    line, key = command.run("create", "--name", "alice").stdout.splitlines()
    assert status(api, key) == 200
    listed = command.run("list").stdout
    assert listed == line + "\n"
    assert key not in listed and "alice" in listed


def test_sessions_of_a_key_or_of_nobody_are_stopped(api: Api, command: Command) -> None:
    anonymous = api.session()
    made = command.json("create", "--name", "alice")
    session = api.client.post(
        SESSIONS, json={"base_model": "org/tiny"}, headers={"Authorization": f"Bearer {made['key']}"}
    ).json["session_id"]
    assert command.json("stop-sessions", made["id"]) == [session]
    assert command.json("stop-sessions", "anonymous") == [anonymous.rpartition("/")[2]]
    assert command.json("stop-sessions", "anonymous") == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["revoke", "0123456789abcdef"], "no such API key: 0123456789abcdef"),
        (["create"], "--name"),
        (["create", "--name", ""], "--name"),
        (["create", "--name", "a\nb"], "--name"),
        (["create", "--name", "alice", "--rate", "nan"], "--rate"),
        (["create", "--name", "alice", "--rate", "inf"], "--rate"),
        (["create", "--name", "alice", "--max-sessions", "-1"], "--max-sessions"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(
    store: Store, command: Command, arguments: list[str], words: str
) -> None:
    done = command.run(*arguments)
    assert done.returncode != 0
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert store.api_keys.list() == []


def test_an_absent_server_is_a_sentence(tmp_path: Path) -> None:
    done = Command(f"unix://{tmp_path}/nobody.sock", tmp_path).run("list")
    assert done.returncode == 1
    assert "Redis cannot be reached" in done.stderr and "Traceback" not in done.stderr
