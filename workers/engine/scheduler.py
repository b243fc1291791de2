"""Which work runs next on the device."""

from collections.abc import Iterator
from typing import Protocol


class Work(Protocol):
    """Work that runs in short pieces."""

    def advance(self) -> bool:
        """Runs one piece; returns whether there is more."""

    def fail(self, error: Exception) -> None:
        """Fails the calls in flight."""


class FairScheduler:
    """Runs next the work that has had the least device time, as a fair queue does.

    So work with pieces of any length shares the device evenly: long micro-batches cannot starve sampling, nor sampling
    them. New work starts with the time of the least served, without credit for its absence.
    """

    def __init__(self) -> None:
        self._seconds: dict[Work, float] = {}

    def __bool__(self) -> bool:
        return bool(self._seconds)

    def __iter__(self) -> Iterator[Work]:
        return iter(list(self._seconds))

    def add(self, work: Work) -> None:
        """Does nothing for work that was added before."""
        self._seconds.setdefault(work, min(self._seconds.values(), default=0.0))

    def remove(self, work: Work) -> None:
        self._seconds.pop(work, None)

    def next(self) -> Work:
        return min(self._seconds, key=lambda work: self._seconds[work])

    def charge(self, work: Work, seconds: float) -> None:
        self._seconds[work] += seconds
