"""`python -m benchmarks`: every part in its order, each in a process of its own, then the tables and the pictures.

Ends with 1 when a part failed, which a part does when a check does not hold; a ratio that is not reached is told in the
table and fails nothing.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time

from benchmarks.engines import CELERITY, COMMON, GENERATE, PEFT
from benchmarks.model import ROOT
from benchmarks.options import DTYPES
from benchmarks.report import FOLDER

# Of the bundled model, once in each dtype; then of the path around the engine, which knows no dtype.
ENGINE = ("exactness", "sampling", "training", "many_sessions", "prefixes", "choices", "curves")
AROUND = ("round_trip", "large_bodies", "pipelined", "start_up", "growth")
QUICK = (
    ["exactness", "--quick"],
    ["sampling", "--quick", "--engines", CELERITY.name, GENERATE.name],
    ["training", "--quick", "--engines", CELERITY.name, PEFT.name],
    ["prefixes", "--quick", "--rounds", "1"],
    ["round_trip", "--rounds", "50"],
)


def parts(quick: bool, rounds: int | None) -> list[list[str]]:
    if quick:
        return list(QUICK)
    times = [] if rounds is None else ["--rounds", str(rounds)]
    engine = [[part, "--dtype", dtype, *times] for dtype in DTYPES for part in ENGINE]
    return [*engine, *([part] for part in AROUND)]


def run(part: list[str]) -> bool:
    print(f"\n== {' '.join(part)}, {time.strftime('%H:%M:%S')}", flush=True)
    command = [sys.executable, "-m", f"benchmarks.{part[0]}", *part[1:]]
    return subprocess.run(command, cwd=ROOT, env=os.environ | COMMON, check=False).returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="in bf16, less of everything: within five minutes")
    parser.add_argument("--rounds", type=int, help="of each engine workload, where less time is at hand")
    asked = parser.parse_args()
    shutil.rmtree(ROOT / FOLDER, ignore_errors=True)
    failed = [part for part in parts(asked.quick, asked.rounds) if not run(part)]
    run(["table"])
    run(["plots"])
    for part in failed:
        print(f"failed: {' '.join(part)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
