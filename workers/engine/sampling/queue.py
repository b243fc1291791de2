"""Sequences that wait for a place in the decode batch."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from itertools import chain

from workers.engine.sampling.sequences import GrowingSequence, Sampling


class WaitingLine:
    """First come, first served within a session; between sessions, the one with the fewest running comes next."""

    def __init__(self) -> None:
        self._lines: dict[str, deque[GrowingSequence]] = {}

    def __bool__(self) -> bool:
        return bool(self._lines)

    def __iter__(self) -> Iterator[GrowingSequence]:
        return chain.from_iterable(self._lines.values())

    def join(self, sampling: Sampling) -> None:
        """Its sequences that may have no token have ended already."""
        if sequences := sampling.unfinished:
            self._lines.setdefault(sampling.session_id, deque()).extend(sequences)

    def first(self, running: Iterable[GrowingSequence]) -> GrowingSequence:
        """Who is next; the line must not be empty."""
        places = Counter(sequence.sampling.session_id for sequence in running)
        return self._lines[min(self._lines, key=lambda session_id: places[session_id])][0]

    def leave(self, sequence: GrowingSequence) -> None:
        """Takes out the sequence that `first` named."""
        line = self._lines[sequence.sampling.session_id]
        first = line.popleft()
        assert first is sequence
        if not line:
            del self._lines[sequence.sampling.session_id]

    def abandon(self, sampling: Sampling) -> None:
        """Takes out all sequences of a request."""
        line = self._lines.get(sampling.session_id, ())
        if left := deque(sequence for sequence in line if sequence.sampling is not sampling):
            self._lines[sampling.session_id] = left
        else:
            self._lines.pop(sampling.session_id, None)
