"""The lock of the data folder."""

import subprocess
from pathlib import Path

import pytest

from stack.lock import DataFolderLock, check_unlocked


def test_a_second_stack_in_the_same_folder_is_refused_until_the_first_ends(tmp_path: Path) -> None:
    first = DataFolderLock(tmp_path)
    with pytest.raises(ValueError, match="another stack runs in"):
        DataFolderLock(tmp_path)
    first.release()
    DataFolderLock(tmp_path).release()


def test_a_process_that_inherited_the_lock_keeps_it(tmp_path: Path) -> None:
    lock = DataFolderLock(tmp_path)
    with subprocess.Popen(["sleep", "600"], pass_fds=[lock.fd]) as heir:
        lock.release()
        try:
            with pytest.raises(ValueError, match="another stack runs in"):
                DataFolderLock(tmp_path)
        finally:
            heir.kill()
    DataFolderLock(tmp_path).release()


def test_who_is_refused_is_told_by_whom(tmp_path: Path) -> None:
    check_unlocked(tmp_path)
    lock = DataFolderLock(tmp_path, "http://here:8000, pid 7")
    for attempt in (DataFolderLock, check_unlocked):
        with pytest.raises(ValueError, match=r"another stack runs in .* \(http://here:8000, pid 7\): stop it"):
            attempt(tmp_path)
    lock.release()
    check_unlocked(tmp_path)


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"file/data cannot be used \(Not a directory\): choose another DATA_DIR"):
        DataFolderLock(tmp_path / "file" / "data")


def test_a_look_at_a_folder_makes_nothing(tmp_path: Path) -> None:
    check_unlocked(tmp_path / "data")
    assert not (tmp_path / "data").exists()
