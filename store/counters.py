"""What the scripts count since the store was made, and the bounds of the histograms that they keep.

A counter is a field `name:label:...` of one hash. A histogram is a field per bucket, named by its upper bound, and
one for the sum of what was observed; the buckets are added up when they are read.
"""

import math
from bisect import bisect_left
from collections import defaultdict
from itertools import accumulate
from typing import NamedTuple

# Seconds: from an operation that costs nothing to one that waits behind an hour of others.
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
SUM = "sum"

Labels = tuple[str, ...]


class Histogram(NamedTuple):
    """`buckets` are (upper bound, observations up to it), the last bound being infinite; `sum` is in seconds."""

    buckets: list[tuple[float, int]]
    sum: float


class Counters:
    """What the hash holds, by name."""

    def __init__(self, fields: dict[bytes, bytes]) -> None:
        self._counters: defaultdict[str, dict[Labels, float]] = defaultdict(dict)
        for field, value in fields.items():
            name, *labels = field.decode().split(":")
            self._counters[name][tuple(labels)] = float(value)

    def counter(self, name: str) -> dict[Labels, float]:
        return self._counters[name]

    def histogram(self, name: str) -> dict[str, Histogram]:
        """One for each value of its label."""
        found: defaultdict[str, dict[str, float]] = defaultdict(dict)
        for (label, place), value in self._counters[name].items():
            found[label][place] = value
        return {label: _histogram(places) for label, places in found.items()}


def _histogram(places: dict[str, float]) -> Histogram:
    sizes = [0] * (len(BUCKETS) + 1)
    for place, count in places.items():
        if place != SUM:
            # A bucket of other bounds than today's counts in the one that holds it.
            sizes[bisect_left(BUCKETS, float(place))] += int(count)
    return Histogram(list(zip((*BUCKETS, math.inf), accumulate(sizes), strict=True)), places.get(SUM, 0.0))


def lua_table() -> str:
    """The bounds for the scripts."""
    return f"local buckets = {{{', '.join(f'{bound:g}' for bound in BUCKETS)}}}\n"
