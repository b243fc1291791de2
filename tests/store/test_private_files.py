"""What Celerity keeps in DATA_DIR is its owner's alone, also what lay there before."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from settings import Settings
from store.objects import open_objects
from store.private_files import close_data_dir, close_for, open_private


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """As an earlier version left it."""
    folder = tmp_path / "data"
    for file in ("valkey/appendonlydir/log.aof", "objects/payloads/one/two", "lock", "stack.log", "of-the-user/file"):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text("")
    return folder


def test_what_was_open_is_closed_and_named_and_the_users_own_is_left(data_dir: Path) -> None:
    closed = close_data_dir(data_dir)
    assert closed == [data_dir, *(data_dir / name for name in ("objects", "valkey", "lock", "stack.log"))]
    for path in data_dir.rglob("*"):
        if "of-the-user" not in path.parts:
            assert mode(path) == (0o700 if path.is_dir() else 0o600), path
    assert mode(data_dir / "of-the-user") == 0o755
    assert close_data_dir(data_dir) == [], "there is nothing more to close"


def test_a_folder_that_all_share_stays_theirs_and_what_is_ours_in_it_is_closed(data_dir: Path) -> None:
    data_dir.chmod(0o1777)
    assert data_dir not in close_data_dir(data_dir)
    assert (mode(data_dir), mode(data_dir / "valkey")) == (0o1777, 0o700)


def test_a_link_leads_to_what_is_the_users_own(tmp_path: Path, data_dir: Path) -> None:
    elsewhere = tmp_path / "disk"
    elsewhere.mkdir()
    (data_dir / "objects").rename(elsewhere / "objects")
    (data_dir / "objects").symlink_to(elsewhere / "objects")
    close_data_dir(data_dir)
    assert mode(elsewhere / "objects") == 0o755
    (tmp_path / "link").symlink_to(data_dir)
    data_dir.chmod(0o755)
    assert close_data_dir(tmp_path / "link") == [data_dir], "the name of the folder itself may be one"


def test_nothing_is_made_where_nothing_is(tmp_path: Path) -> None:
    assert close_data_dir(tmp_path / "none") == []
    assert not (tmp_path / "none").exists()


def test_objects_are_private_in_data_dir_from_the_first_on(tmp_path: Path) -> None:
    data_dir = tmp_path / "deep" / "data"
    objects = open_objects("", data_dir)
    objects.put("a/b", b"secret")
    assert [mode(path) for path in (data_dir, data_dir / "objects", data_dir / "objects" / "a")] == [0o700] * 3
    assert mode(data_dir / "objects" / "a" / "b") == 0o600


def test_a_folder_of_the_users_own_keeps_the_modes_that_its_owner_wants(tmp_path: Path) -> None:
    open_objects(f"file://{tmp_path}", tmp_path / "data").put("a", b"shared")
    assert mode(tmp_path / "a") == 0o644


def test_a_process_that_keeps_no_objects_there_leaves_it_alone(
    data_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    close_for(Settings(data_dir=data_dir, objects_url="s3://bucket"))
    assert (mode(data_dir), caplog.messages) == (0o755, [])
    close_for(Settings(data_dir=data_dir))
    assert mode(data_dir) == 0o700
    assert caplog.messages[0] == f"other users of this host could reach {data_dir}: closed to all but its owner"


def test_a_command_that_looks_into_a_new_data_dir_leaves_it_closed(tmp_path: Path) -> None:
    open_objects("", tmp_path / "data")
    assert [mode(tmp_path / name) for name in ("data", "data/objects")] == [0o700, 0o700]


def test_a_file_that_is_opened_privately_is_its_owners(tmp_path: Path) -> None:
    with open(tmp_path / "log", "a", opener=open_private) as file:
        file.write("line")
    assert mode(tmp_path / "log") == 0o600
