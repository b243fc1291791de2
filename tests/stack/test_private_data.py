"""The local stack keeps its data to itself: files, the secret in them, and the server that has it."""

import os
import stat
from pathlib import Path

import psutil
import pytest
from redis import Redis

from domain.redis_url import read_redis_url
from stack.running import running_stack
from stack.unix_socket import MOST_BYTES, UnixSocket
from store import keys


def secret_of(data_dir: Path) -> bytes:
    """Drawn as the API would, if there is none."""
    with Redis.from_url((data_dir / "valkey" / "url").read_text()) as redis:
        redis.set(keys.SIGNING_SECRET, os.urandom(8).hex(), nx=True)
        found = redis.get(keys.SIGNING_SECRET)
    assert isinstance(found, bytes)
    return found


def open_paths(folder: Path) -> list[Path]:
    return [path for path in (folder, *folder.rglob("*")) if path.lstat().st_mode & 0o077]


def test_what_others_could_read_is_closed_and_its_secret_counts_no_more(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    before = os.umask(0o022)
    try:
        with running_stack(data_dir) as stack:
            first = secret_of(data_dir)
            assert open_paths(data_dir) == []
            valkey = psutil.Process(stack.processes["valkey"].pid)
            assert [each for each in valkey.net_connections("inet") if each.status == psutil.CONN_LISTEN] == []
            assert stat.S_ISSOCK((data_dir / "valkey" / "valkey.sock").stat().st_mode)
        for path in (data_dir, *data_dir.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        with running_stack(data_dir):
            second = secret_of(data_dir)
            assert open_paths(data_dir) == []
        with running_stack(data_dir):
            assert secret_of(data_dir) == second != first
    finally:
        os.umask(before)
    log = (data_dir / "stack.log").read_text()
    assert log.count("closed to all but their owner") == 1
    assert log.count("older links have ended") == 1


def test_a_socket_lies_in_the_data_folder(tmp_path: Path) -> None:
    socket = UnixSocket(tmp_path)
    assert socket.path == tmp_path / "valkey.sock"
    assert read_redis_url(socket.url).path == str(socket.path)


def test_and_where_that_path_would_be_too_long_in_a_private_folder_that_goes_with_it(tmp_path: Path) -> None:
    socket = UnixSocket(tmp_path / ("a long name/" * 10))
    assert len(os.fsencode(socket.path)) <= MOST_BYTES
    assert stat.S_IMODE(socket.path.parent.stat().st_mode) == 0o700
    socket.remove()
    assert not socket.path.parent.exists()


def test_a_folder_for_temporary_files_that_is_as_long_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("l" * MOST_BYTES)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    with pytest.raises(ValueError, match="choose a shorter DATA_DIR or TMPDIR"):
        UnixSocket(long)
    assert list(long.iterdir()) == []
