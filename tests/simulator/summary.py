"""Many histories: how many, of how many operations and faults, and the first that failed."""

import multiprocessing
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from tests.simulator.faults import Fault
from tests.simulator.history import Outcome, prepare, run
from tests.simulator.plan import Plan, plan
from tests.simulator.shrink import shrink

# What a process is given at a time.
CHUNK = 50


class Summary:
    """`seconds` are those of the processor."""

    def __init__(self) -> None:
        self.histories = self.operations = self.calls = 0
        self.seconds = 0.0
        self.faults: Counter[Fault] = Counter()
        self.failed: tuple[int, Outcome] | None = None

    def add(self, other: "Summary") -> None:
        self.histories += other.histories
        self.operations += other.operations
        self.calls += other.calls
        self.seconds += other.seconds
        self.faults += other.faults
        self.failed = self.failed or other.failed

    def __str__(self) -> str:
        faults = "\n".join(f"{number:9,} {fault}" for fault, number in sorted(self.faults.items()))
        return (
            f"{self.histories:,} histories in {self.seconds:.0f} s of a processor: {self.operations:,} operations, "
            f"{self.calls:,} calls of the store, {self.faults.total():,} faults\n{faults}"
        )


def run_many(seeds: range, jobs: int, seconds: float) -> Summary:
    """By so many processes, until a history fails, or they have used so many seconds."""
    total = Summary()
    for summary in _summaries([seeds[place : place + CHUNK] for place in range(0, len(seeds), CHUNK)], jobs):
        total.add(summary)
        if total.failed or total.seconds > seconds:
            break
    return total


def _summaries(chunks: Sequence[range], jobs: int) -> Iterator[Summary]:
    if jobs == 1:
        prepare()
        yield from map(_summary, chunks)
        return
    with multiprocessing.get_context("spawn").Pool(jobs, prepare) as pool:
        yield from pool.imap(_summary, chunks)


def _summary(seeds: range) -> Summary:
    """Of these histories, up to the first that fails."""
    summary, began = Summary(), time.process_time()
    for seed in seeds:
        outcome = run(plan(seed))
        summary.histories += 1
        summary.operations += outcome.operations
        summary.calls += outcome.calls
        summary.faults.update(outcome.injected.values())
        if outcome.failure:
            summary.failed = seed, outcome
            break
    summary.seconds = time.process_time() - began
    return summary


def trace_of(seed: int, seconds: float) -> str:
    """A history that goes wrong, made smaller for so many seconds, as people can read it."""
    smallest = shrink(plan(seed), _faults_of, seconds) if seconds else plan(seed)
    outcome = run(smallest, each=1, tells=True)
    lines = [
        *outcome.trace,
        *_described(smallest),
        f"{len(outcome.injected)} faults: {dict(outcome.injected)}",
        outcome.failure,
    ]
    return "\n".join(lines)


def _faults_of(smaller: Plan) -> dict[str, Fault] | None:
    outcome = run(smaller, each=1)
    return outcome.injected if outcome.failure else None


def _described(smallest: Plan) -> Iterable[str]:
    yield f"{smallest.workers} workers, {smallest.apis} API processes"
    for program in smallest.programs:
        yield f"{program.name}: {', '.join(f'{step.name} {step.what} {step.number}' for step in program.steps)}"
