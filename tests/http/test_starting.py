"""What the API looks at before it serves."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from socket import AF_INET, AF_INET6, AF_UNIX

import pytest

from app.starting import check_exposure, check_store
from settings import Settings
from stack.process import ROOT

# As docker-compose.yml has it, and as the command line does.
COMMANDS = {
    "gunicorn": ["gunicorn", "-c", "app/gunicorn.conf.py", "--bind", "0.0.0.0:0", "app.wsgi:application"],
    "celerity": ["celerity", "api", "--bind", "0.0.0.0:0"],
}


@pytest.mark.parametrize("program", COMMANDS)
def test_an_api_without_keys_is_not_served_to_other_hosts(program: str, redis_url: str, tmp_path: Path) -> None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CELERITY_")}
    given = {**clean, "CELERITY_REDIS_URL": redis_url, "DATA_DIR": str(tmp_path)}
    command = [sys.executable, "-m", *COMMANDS[program]]
    ended = subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 1
    assert ended.stderr.endswith("celerity: 0.0.0.0 can be reached from other hosts: set CELERITY_API_KEYS first\n")
    assert "Traceback" not in ended.stderr and "Booting worker" not in ended.stderr


@pytest.mark.parametrize(
    ("family", "address", "is_open"),
    [
        (AF_INET, "127.0.0.1", False),
        (AF_INET, "127.0.0.2", False),
        (AF_INET, "0.0.0.0", True),
        (AF_INET6, "::1", False),
        (AF_INET6, "::", True),
        (AF_UNIX, "", False),
    ],
)
def test_whether_others_reach_it_is_told_by_where_it_listens(
    tmp_path: Path, family: int, address: str, is_open: bool
) -> None:
    place = str(tmp_path / "api.sock") if family == AF_UNIX else (address, 0)
    with socket.socket(family) as listening:
        listening.bind(place)
        check_exposure(Settings(api_keys=("secret",)), [listening])
        if is_open:
            with pytest.raises(ValueError, match=f"{address} can be reached from other hosts"):
                check_exposure(Settings(), [listening])
        else:
            check_exposure(Settings(), [listening])


def test_an_api_starts_before_its_redis(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    check_store(Settings(redis_url=f"unix://{tmp_path}/nobody.sock", data_dir=tmp_path))
    assert "Redis is away" in caplog.text
