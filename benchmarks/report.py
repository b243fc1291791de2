"""Where the benchmarks write what they measured, and find it again: one JSON file each under artifacts/bench/."""

import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

FOLDER = Path("artifacts") / "bench"


def write_report(name: str, result: dict[str, Any]) -> Path:
    """The file that now holds `result`, with where and when it was measured."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    machine = {"cores": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version()}
    measured = {"measured_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "on": machine, **result}
    path = FOLDER / f"{name}.json"
    path.write_bytes(orjson.dumps(measured, option=orjson.OPT_INDENT_2))
    return path


def read_report(name: str) -> dict[str, Any] | None:
    """None where that has not been measured."""
    path = FOLDER / f"{name}.json"
    return orjson.loads(path.read_bytes()) if path.exists() else None


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that a `share` of them do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-int(share * 1000) * len(ordered) // 1000) - 1)]
