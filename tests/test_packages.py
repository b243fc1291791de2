"""Which package may import which: the import contracts are in pyproject.toml, next to the reasons."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("domain", "models", "schemas", "app", "store", "workers", "stack", "client", "cli", "tracing")


def test_dependencies_point_one_way() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr


@pytest.mark.parametrize("package", ["domain", "models.catalog", "schemas", "store", "app"])
def test_a_package_that_serves_requests_loads_no_torch(package: str) -> None:
    """An API process that loads torch takes a second and 300 MB more, and must not touch a GPU before it forks."""
    code = f"import sys, {package}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_without_traces_nothing_of_their_packages_is_loaded() -> None:
    """The client library of Redis loads a part of them by itself, where they are installed."""
    packages = "app.operations, app.tracing, store.store, workers.process"
    code = f"import sys, {packages}; sys.exit(any(name.startswith('opentelemetry.instr') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_no_file_is_longer_than_400_lines() -> None:
    lengths = {
        file: len(file.read_text().splitlines())
        for package in (*PACKAGES, "tests", "testing", "benchmarks", "examples")
        for file in (ROOT / package).rglob("*.py")
    }
    assert lengths and {file: length for file, length in lengths.items() if length > 400} == {}


def test_benchmarks_share_with_tests_only_what_lies_in_testing() -> None:
    sources = [file.read_text() for package in ("benchmarks", "testing") for file in (ROOT / package).rglob("*.py")]
    assert sources and not any("from tests" in source or "import tests" in source for source in sources)
