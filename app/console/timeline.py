"""Operations as bars over time: how long each waited, and how long it ran."""

import time
from collections.abc import Sequence
from typing import NamedTuple

from contract.operation import Operation

WIDTH = 600.0
NARROWEST = 1.0


class Bar(NamedTuple):
    """Places and widths are in units of the drawing; seconds are None for what has not happened."""

    operation: Operation
    waited: float
    ran: float | None
    waits_at: float
    waits_wide: float
    runs_at: float
    runs_wide: float


def timeline(operations: Sequence[Operation]) -> list[Bar]:
    """The bars of some operations, the newest first, on one scale."""
    if not operations:
        return []
    first = min(operation.created_at for operation in operations)
    last = max(_end(operation) for operation in operations)
    scale = WIDTH / max(last - first, 1e-3)
    return [_bar(operation, first, scale) for operation in operations]


def _bar(operation: Operation, first: float, scale: float) -> Bar:
    end, started = _end(operation), operation.started_at
    begun = end if started is None else started
    return Bar(
        operation,
        waited=begun - operation.created_at,
        ran=None if started is None else end - started,
        waits_at=(operation.created_at - first) * scale,
        waits_wide=(begun - operation.created_at) * scale,
        runs_at=min((begun - first) * scale, WIDTH - NARROWEST),
        runs_wide=0.0 if started is None else max((end - started) * scale, NARROWEST),
    )


def _end(operation: Operation) -> float:
    """Now, for one that has not ended; clocks may differ, so never before what has happened."""
    now = time.time()
    return operation.ended_at or max(now, operation.created_at, operation.started_at or 0.0)
