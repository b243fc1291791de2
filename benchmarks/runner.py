"""Engines side by side: each in a process of its own, the same workload given to one after the other."""

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median_low
from typing import Any

from benchmarks.engines import THREADS, EngineSpec
from benchmarks.model import ROOT
from benchmarks.report import FOLDER
from benchmarks.workloads import Workload, to_json

Reading = dict[str, Any]
LOGS = ROOT / FOLDER / "logs"


class Runner:
    """An engine's process, loaded and waiting; while another runs it sleeps."""

    def __init__(self, engine: EngineSpec, process: "subprocess.Popen[str]") -> None:
        self.engine, self._process = engine, process
        self._answer()

    def run(self, workload: Workload) -> Reading:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(to_json(workload)) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> Reading:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.engine.name} ended with {self._process.wait()}; its words are in its log")
        answer: Reading = json.loads(line)
        return answer


@contextmanager
def runner(engine: EngineSpec, model: Path, dtype: str, device: str = "cpu") -> Iterator[Runner]:
    LOGS.mkdir(parents=True, exist_ok=True)
    arguments = [engine.module, str(model), dtype, device, str(THREADS)]
    with (LOGS / f"{engine.name}-{dtype}.log").open("w") as log:
        process = subprocess.Popen(
            [str(engine.python), "-m", "benchmarks.worker", *arguments],
            cwd=ROOT,
            env=engine.process_environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        try:
            yield Runner(engine, process)
        finally:
            process.terminate()
            process.wait()


def run_alternately(
    engines: Sequence[EngineSpec],
    workloads: Sequence[Workload],
    model: Path,
    dtype: str,
    *,
    rounds: int,
    device: str = "cpu",
) -> Iterator[tuple[Workload, list[dict[str, Any]]]]:
    """Each workload with one row for each engine.

    The rounds alternate: every engine runs a workload before any runs it again. There is no round to warm up: of three,
    the median leaves out the one in which something was compiled.
    """
    with ExitStack() as stack:
        runners = [stack.enter_context(runner(engine, model, dtype, device)) for engine in engines]
        for workload in workloads:
            yield workload, _rows(runners, workload, rounds)


def _rows(runners: list[Runner], workload: Workload, rounds: int) -> list[dict[str, Any]]:
    readings: dict[str, list[Reading]] = {one.engine.name: [] for one in runners}
    for _ in range(rounds):
        for one in runners:
            readings[one.engine.name].append(one.run(workload))
    return [summary(name, workload, of) for name, of in readings.items()]


def summary(name: str, workload: Workload, readings: list[Reading]) -> dict[str, Any]:
    """Median seconds (the lower of two), and the most memory of any round."""
    seconds = median_low(reading["seconds"] for reading in readings)
    peak = max(readings, key=lambda reading: reading["peak_bytes"])
    return {
        "engine": name,
        "workload": workload.name,
        "tokens": workload.tokens,
        "seconds": [reading["seconds"] for reading in readings],
        "tokens_per_second": workload.tokens / seconds,
        "peak_bytes": peak["peak_bytes"],
        "growth_bytes": peak["growth_bytes"],
        **{key: readings[0][key] for key in ("loss", "parts") if key in readings[0]},
    }


def print_rows(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        memory = f"{row['peak_bytes'] / 1e9:6.2f} GB at most, {row['growth_bytes'] / 1e9:6.2f} of it new"
        rate = f"{row['tokens_per_second']:8.0f} tokens/s"
        print(f"{row['workload']:24} {row['engine']:10} {rate}   {memory}", flush=True)
