"""A pytest plugin: where a test may be skipped. Anywhere for want of a GPU, and in CI for nothing else."""

import os
from collections.abc import Generator
from typing import Any

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, pytest.TestReport]:
    """In CI, a skipped test that does not need a GPU has failed, for the reason that it was skipped for."""
    report: pytest.TestReport = yield
    expected_to_fail = hasattr(report, "wasxfail")
    if os.environ.get("CI") and report.skipped and not expected_to_fail and item.get_closest_marker("gpu") is None:
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not allow: {report.longrepr}"
    return report
