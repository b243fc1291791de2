"""Sequences that wait for a place in the decode batch."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from itertools import chain

from workers.engine.sampling.sequences import GrowingSequence, Sampling


class SequenceQueue:
    """First in, first out within a session; between sessions, the one with the fewest running sequences is next."""

    def __init__(self) -> None:
        self._queues: dict[str, deque[GrowingSequence]] = {}

    def __bool__(self) -> bool:
        return bool(self._queues)

    def __iter__(self) -> Iterator[GrowingSequence]:
        return chain.from_iterable(self._queues.values())

    def add(self, sampling: Sampling) -> None:
        """All sequences of a request but those that have ended already, since they may have no token."""
        if sequences := sampling.unfinished:
            self._queues.setdefault(sampling.session_id, deque()).extend(sequences)

    def first(self, running: Iterable[GrowingSequence]) -> GrowingSequence:
        """The sequence that is next; the queue must not be empty."""
        counts = Counter(sequence.sampling.session_id for sequence in running)
        return self._queues[min(self._queues, key=lambda session_id: counts[session_id])][0]

    def remove(self, sequence: GrowingSequence) -> None:
        """Removes the sequence that `first` returned."""
        queue = self._queues[sequence.sampling.session_id]
        first = queue.popleft()
        assert first is sequence
        if not queue:
            del self._queues[sequence.sampling.session_id]

    def abandon(self, sampling: Sampling) -> None:
        """Removes all sequences of a request."""
        queue = self._queues.get(sampling.session_id, ())
        if left := deque(sequence for sequence in queue if sequence.sampling is not sampling):
            self._queues[sampling.session_id] = left
        else:
            self._queues.pop(sampling.session_id, None)
