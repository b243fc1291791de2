"""Operations as bars over time: how long each took to arrive, waited, ran, and lay until its result was first read."""

import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from domain.operation import Operation

WIDTH = 600.0
NARROWEST = 1.0
PHASES = ("arrived", "waited", "ran", "lay")


class Phase(NamedTuple):
    """`name` says what it was doing; times are Unix seconds."""

    name: str
    began: float
    ended: float

    @property
    def seconds(self) -> float:
        return self.ended - self.began


class Mark(NamedTuple):
    """A phase in units of the drawing."""

    name: str
    at: float
    wide: float


class Bar(NamedTuple):
    """`seconds` are those of its phases by name; what has not happened is not in it."""

    operation: Operation
    seconds: dict[str, float]
    marks: list[Mark]


def timeline(operations: Sequence[Operation]) -> list[Bar]:
    """The bars of some operations, the newest first, on one scale."""
    if not operations:
        return []
    phases = [list(_phases(operation)) for operation in operations]
    first = min(phase.began for each in phases for phase in each)
    last = max(phase.ended for each in phases for phase in each)
    scale = WIDTH / max(last - first, 1e-3)
    return [
        Bar(
            operation,
            {phase.name: phase.seconds for phase in each},
            [_mark(phase, first, scale) for phase in each],
        )
        for operation, each in zip(operations, phases, strict=True)
    ]


def _phases(operation: Operation) -> Iterator[Phase]:
    accepted, started, ended = operation.created_at, operation.started_at, _end(operation)
    arrived, waited, ran, lay = PHASES
    yield Phase(arrived, accepted - operation.uploaded_in, accepted)
    yield Phase(waited, accepted, ended if started is None else started)
    if started is not None:
        yield Phase(ran, started, ended)
    if operation.read_at is not None:
        yield Phase(lay, ended, operation.read_at)


def _mark(phase: Phase, first: float, scale: float) -> Mark:
    """What ran can be seen, however short."""
    wide = phase.seconds * scale
    if phase.name == "ran":
        wide = max(wide, NARROWEST)
    return Mark(phase.name, min((phase.began - first) * scale, WIDTH - NARROWEST), wide)


def _end(operation: Operation) -> float:
    """Now, for one that has not ended; clocks may differ, so never before what has happened."""
    now = time.time()
    return operation.ended_at or max(now, operation.created_at, operation.started_at or 0.0)
