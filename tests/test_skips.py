"""In CI a test that is skipped is one that fails, so that a missing program is noticed there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stack.process import ROOT

SKIPPED = """
import pytest

@pytest.mark.skip(reason="no browser")
def test_of_the_console(): ...

@pytest.mark.gpu
@pytest.mark.skip(reason="no GPU")
def test_of_a_gpu(): ...

@pytest.mark.xfail
def test_that_is_known_to_fail(): assert False
"""


@pytest.mark.parametrize(("ci", "summary"), [("true", "1 skipped, 1 xfailed, 1 error"), ("", "2 skipped, 1 xfailed")])
def test_only_for_want_of_a_gpu_may_a_test_be_skipped_in_ci(tmp_path: Path, ci: str, summary: str) -> None:
    file = tmp_path / "test_skipped.py"
    file.write_text(SKIPPED)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.skips", "-p", "no:cacheprovider"]
    options = ["-o", "markers=gpu", "--rootdir", str(tmp_path), "-c", os.devnull]
    told = subprocess.run(
        [*command, *options, str(file)], cwd=ROOT, env={**os.environ, "CI": ci}, capture_output=True, text=True
    )
    assert summary in told.stdout
    assert ("skipped, which CI does not allow" in told.stdout and "no browser" in told.stdout) == bool(ci)
