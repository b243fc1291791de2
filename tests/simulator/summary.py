"""Many histories: how many, of how many operations and faults, and the first that went wrong."""

import time
from collections import Counter
from collections.abc import Iterable

from tests.simulator.faults import Fault
from tests.simulator.history import Ended, run
from tests.simulator.plan import Plan, plan
from tests.simulator.shrink import shrink


class Summary:
    def __init__(self) -> None:
        self.histories = self.operations = self.calls = 0
        self.faults: Counter[Fault] = Counter()
        self.wrong: tuple[int, Ended] | None = None
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def run(self, seeds: Iterable[int], seconds: float) -> None:
        """Until one goes wrong, or so many seconds are over."""
        for seed in seeds:
            ended = run(plan(seed))
            self.histories += 1
            self.operations += ended.operations
            self.calls += ended.calls
            self.faults.update(ended.struck.values())
            if ended.wrong:
                self.wrong = seed, ended
            if ended.wrong or self.seconds > seconds:
                return

    def __str__(self) -> str:
        faults = "\n".join(f"{number:9,} {fault}" for fault, number in sorted(self.faults.items()))
        return (
            f"{self.histories:,} histories in {self.seconds:.0f} s: {self.operations:,} operations, "
            f"{self.calls:,} calls of the store, {self.faults.total():,} faults\n{faults}"
        )


def told(seed: int, seconds: float) -> str:
    """A history that goes wrong, made smaller for so many seconds, as people can read it."""
    smallest = shrink(plan(seed), _faults_of, seconds) if seconds else plan(seed)
    ended = run(smallest, each=1, tells=True)
    lines = [*ended.trace, *_described(smallest), f"{len(ended.struck)} faults: {dict(ended.struck)}", ended.wrong]
    return "\n".join(lines)


def _faults_of(smaller: Plan) -> dict[str, Fault] | None:
    ended = run(smaller, each=1)
    return ended.struck if ended.wrong else None


def _described(smallest: Plan) -> Iterable[str]:
    yield f"{smallest.workers} workers, {smallest.apis} API processes"
    for program in smallest.programs:
        yield f"{program.name}: {', '.join(f'{step.name} {step.what} {step.number}' for step in program.steps)}"
