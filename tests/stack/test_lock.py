"""The lock of the data folder."""

import subprocess
from pathlib import Path

import pytest

from stack.lock import DataFolderLock


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
