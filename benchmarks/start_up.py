"""How long a stack takes to start, and what an idle worker holds: `python -m benchmarks.start_up`.

With the bundled model on disk: seconds from the start to `/readyz`, and on to the first session RUNNING, which is when
the model is loaded; then the worker's own memory (what would be free again without it) against the weights' size: with
that session's adapter, gradients and moments, and idle, when the session was stopped.
"""

import argparse
import tempfile
import time
from math import prod
from pathlib import Path
from typing import Any

import psutil
from safetensors import safe_open

from benchmarks.report import write_report
from celerity_client import Client
from models import bundled
from stack.running import running_stack

DTYPES = {"float32": 4, "bfloat16": 2}


def weights(directory: Path, bytes_each: int) -> int:
    """Bytes of the model's weights in memory: those of its files, which are kept in another type perhaps."""
    count = 0
    for path in directory.glob("*.safetensors"):
        with safe_open(path, framework="np") as file:
            count += sum(prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118 - no mapping
    return count * bytes_each


def measure(dtype: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="celerity-start-") as folder:
        began = time.monotonic()
        with running_stack(
            Path(folder) / "data", settings={"CELERITY_DEVICE": "cpu", "CELERITY_DTYPE": dtype}
        ) as stack:
            ready = time.monotonic() - began
            worker = psutil.Process(stack.processes["worker"].pid)
            before = worker.memory_full_info().uss
            session = Client(stack.url).create_session(bundled.NAME)
            while not session.read()["status"].endswith("RUNNING"):
                time.sleep(0.05)
            running = time.monotonic() - began
            time.sleep(2)
            with_session = worker.memory_full_info().uss
            session.stop()
            time.sleep(2)
            idle = worker.memory_full_info().uss
    return {
        "ready_s": ready,
        "first_session_s": running,
        "before_mb": before / 1e6,
        "with_session_mb": with_session / 1e6,
        "idle_mb": idle / 1e6,
        "weights_mb": weights(bundled.DIRECTORY / bundled.NAME, DTYPES[dtype]) / 1e6,
    }


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.start_up", description=__doc__)
    parser.add_argument("--dtype", choices=tuple(DTYPES))
    options = parser.parse_args()
    result = {dtype: measure(dtype) for dtype in ([options.dtype] if options.dtype else DTYPES)}
    for dtype, row in result.items():
        more, idle = (row[name] - row["weights_mb"] for name in ("with_session_mb", "idle_mb"))
        print(
            f"{dtype:8} ready {row['ready_s']:.1f} s, first session {row['first_session_s']:.1f} s; worker before "
            f"{row['before_mb']:.0f} MB; with the model its weights and {more:.0f} MB beside a session, "
            f"{idle:.0f} MB idle"
        )
    write_report("start_up", result)


if __name__ == "__main__":
    main()
