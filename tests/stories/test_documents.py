"""The code of README and the guides, run as a reader would, against a running stack."""

import os
import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from domain.api_key import KeyLimits
from models import bundled
from settings import Settings
from stack.process import ROOT
from stack.stack import Stack
from store.store import open_store
from testing.bodies import SESSIONS
from tests.documents import Block, blocks_of
from tests.stories.client import Session

# What a page says is the reader's own.
READERS_OWN = """
prompts, mean_reward = [[1, 2, 3], [4, 5, 6]], 0.5

def advantage(reply):
    return 0.5

def score(prompt, tokens):
    return len(set(tokens)) / len(tokens)

"""


class Reader:
    """Types what a page shows, with the address and the ids of this test's server in the place of the page's."""

    def __init__(
        self, stack: Stack, session: Session, key_id: str, keys_url: str, programs: Path, models: Path
    ) -> None:
        self._instead = {
            "http://127.0.0.1:8000": stack.url,
            # A long loop shows nothing more than a short one, and one that never ends, nothing at all.
            r"range\(1, \d+\)": "range(1, 3)",
            "celerity top": "celerity top --once",
            r"(\$PWD/)?\.venv/bin": str(programs),
            "KEY_ID": key_id,
        }
        settings = stack.plan.settings
        given = {"CELERITY_CLIENT_URL": stack.url, "DATA_DIR": str(settings.data_dir), "HF_HUB_OFFLINE": "1"}
        given |= {"CELERITY_MODELS_DIR": str(models)}
        # Of the blocks before, where a page goes on from them.
        given |= {"api": f"{stack.url}{SESSIONS}", "session": session.path.rpartition("/")[2]}
        self._environment, self._keys_url = {**os.environ, **given}, keys_url

    def type(self, *command: str, text: str) -> str:
        """What the block writes, which must be no complaint."""
        for pattern, instead in self._instead.items():
            text = re.sub(pattern, instead, text)
        # The first key would close the stack that other tests share, so keys are made in another store.
        keys = {"CELERITY_REDIS_URL": self._keys_url} if " keys " in text else {}
        environment = self._environment | keys
        answer = subprocess.run(
            [*command, text], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        assert answer.returncode == 0, answer.stdout + answer.stderr
        return answer.stdout


@pytest.fixture
def reader(stack: Stack, http: httpx.Client, models_dir: Path, redis_url: str, tmp_path: Path) -> Reader:
    store = open_store(Settings(redis_url=redis_url, data_dir=tmp_path))
    key, _ = store.api_keys.create("reader", KeyLimits())
    store.close()
    programs = programs_of_make_setup(tmp_path / "bin")
    return Reader(stack, Session(http), key.id, redis_url, programs, models_of_make_setup(tmp_path, models_dir))


def models_of_make_setup(folder: Path, models_dir: Path) -> Path:
    """A folder with the model that the pages name, and no broken one, of which `celerity doctor` complains."""
    link = folder / "models" / bundled.NAME
    link.parent.mkdir(parents=True)
    link.symlink_to(models_dir / bundled.NAME)
    return folder / "models"


def programs_of_make_setup(folder: Path) -> Path:
    """The folder of the programs that a reader has: this Python, and the command line."""
    folder.mkdir()
    (folder / "python").symlink_to(sys.executable)
    celerity = folder / "celerity"
    celerity.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m cli "$@"\n')
    celerity.chmod(0o755)
    return folder


@pytest.mark.parametrize("block", blocks_of("bash"), ids=lambda block: block.name)
def test_what_a_page_shows_for_the_terminal_works(reader: Reader, block: Block) -> None:
    output = reader.type("bash", "-euo", "pipefail", "-c", text=block.text)
    assert '"code"' not in output, "an error of the API, which curl does not mind"
    assert output.count('"TRAINING_OPERATION_STATUS_COMPLETED"') == block.text.count('get "')


@pytest.mark.parametrize("block", blocks_of("python"), ids=lambda block: block.name)
def test_what_a_page_shows_in_python_works(reader: Reader, http: httpx.Client, block: Block) -> None:
    reader.type(sys.executable, "-c", text=READERS_OWN + block.text)
    session = Session.known(http, http.get(f"{SESSIONS}?limit=1").json()[0]["session_id"])
    operations = http.get(f"{session.path}/operations").json()
    ends = [session.end(f"{session.path}/operations/{each['kind']}/{each['operation_id']}") for each in operations]
    assert {end["status"] for end in ends} == {"TRAINING_OPERATION_STATUS_COMPLETED"}
    assert session.read()["step"] == 2
