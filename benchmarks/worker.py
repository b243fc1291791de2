"""The process of one engine: `python -m benchmarks.worker MODULE MODEL DTYPE DEVICE THREADS`.

A line of JSON comes in for each workload and one goes out with what it took. An engine may print what it likes: the
answers go out by a copy of the standard output, which itself is turned to the standard error before
the engine is loaded.
"""

import importlib
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.stopwatch import read
from benchmarks.workloads import Sampling, from_json


def run(peer: Any, job: dict[str, Any], device: str) -> dict[str, Any]:
    workload = from_json(job)
    if hasattr(peer, "prepare"):
        peer.prepare(workload)
    call = peer.sample if isinstance(workload, Sampling) else peer.train
    reading = asdict(read(lambda: call(workload), device))
    answer = reading.pop("answer")
    if isinstance(workload, Sampling):
        assert answer == workload.tokens, f"{answer} tokens sampled of {workload.tokens}"
        return reading
    return reading | {"loss": answer, "parts": peer.parts(workload) if hasattr(peer, "parts") else 1}


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    module, model, dtype, device, threads = sys.argv[1:]
    peer = importlib.import_module(module).load(Path(model), dtype, device, int(threads))
    print(json.dumps({"ready": True}), file=answers)
    for line in sys.stdin:
        print(json.dumps(run(peer, json.loads(line), device)), file=answers)
    if hasattr(peer, "close"):
        peer.close()


if __name__ == "__main__":
    main()
