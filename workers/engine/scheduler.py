"""Whose turn it is on the device."""

from collections.abc import Iterator
from typing import Protocol


class Work(Protocol):
    """Something that runs a short piece at a time."""

    def advance(self) -> bool:
        """One piece; whether there is more."""

    def fail(self, error: Exception) -> None:
        """Ends what is in flight."""


class FairScheduler:
    """Gives the next turn to the work that has had the least device time.

    So pieces of any length share the device evenly: a batch of long micro-batches cannot starve sampling, nor
    sampling a batch. Work that arrives starts level with the least served, without credit for its absence.
    """

    def __init__(self) -> None:
        self._seconds: dict[Work, float] = {}

    def __bool__(self) -> bool:
        return bool(self._seconds)

    def __iter__(self) -> Iterator[Work]:
        return iter(list(self._seconds))

    def add(self, work: Work) -> None:
        """Nothing changes for work that is here already."""
        self._seconds.setdefault(work, min(self._seconds.values(), default=0.0))

    def remove(self, work: Work) -> None:
        self._seconds.pop(work, None)

    def next(self) -> Work:
        return min(self._seconds, key=lambda work: self._seconds[work])

    def charge(self, work: Work, seconds: float) -> None:
        self._seconds[work] += seconds
