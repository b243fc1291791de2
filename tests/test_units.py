"""The systemd units that the documentation shows."""

import re
import shutil
import subprocess
from configparser import ConfigParser
from pathlib import Path

import pytest

from stack.process import ROOT
from tests.documents import Block, blocks_of
from tests.typed_commands import check

INSTALLED = "/opt/celerity"
PATH = re.compile(r"# /etc/systemd/system/(\S+\.service)\n")
units = pytest.mark.parametrize("unit", blocks_of("ini"), ids=lambda unit: unit.name)


def name_of(unit: Block) -> str:
    named = PATH.match(unit.text)
    assert named, "the first line says where it belongs"
    return named[1]


@units
def test_what_it_starts_exists_and_it_is_started_again_and_has_time_to_end(unit: Block) -> None:
    parser = ConfigParser(interpolation=None, strict=False, inline_comment_prefixes=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(unit.text)
    service = parser["Service"]
    program = service["ExecStart"].removeprefix(f"{INSTALLED}/")
    assert program.startswith(".venv/bin/celerity ")
    check(program)
    assert (service["Restart"], service["KillMode"]) == ("always", "mixed")
    # Longer than gunicorn waits (app/gunicorn.conf.py), and CELERITY_DRAIN_SECONDS.
    assert int(service["TimeoutStopSec"]) > 35
    assert "StartLimitBurst" in parser["Unit"] and "WantedBy" in parser["Install"]


def test_there_is_one_of_the_api_and_a_template_of_workers() -> None:
    assert [name_of(unit) for unit in blocks_of("ini")] == ["celerity-api.service", "celerity-worker@.service"]


@units
def test_systemd_finds_nothing_wrong_with_it(unit: Block, tmp_path: Path) -> None:
    """Where there is a systemd."""
    file = tmp_path / name_of(unit)
    file.write_text(unit.text.replace(INSTALLED, str(ROOT)))
    if shutil.which("systemd-analyze"):
        done = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(file)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert str(file) not in done.stderr and "celerity" not in done.stderr, done.stderr
