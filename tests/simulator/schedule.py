"""One thread in which the processes of a deployment seem to run at once: events in a heap, a clock, and greenlets."""

import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from heapq import heappop, heappush
from itertools import count
from random import Random
from traceback import format_exc

from greenlet import GreenletExit, getcurrent, greenlet

# A heavy tail: most waits are of milliseconds, and one in ten is longer than a hundred others.
SHORTEST, SPREAD = 0.001, 1000.0


class Process:
    """What dies and stands still as a whole. One that is dead is never resumed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_dead = False
        self.stands_until = 0.0

    def resume(self) -> None:
        """Called before each of its turns."""


class Coroutine(greenlet):
    """A thread of one process. Its random numbers depend on the seed and its name alone, so that a history from which
    another coroutine or one fault is left out stays as it was until that is missed."""

    def __init__(self, schedule: "Schedule", process: Process, name: str, action: Callable[[], object]) -> None:
        super().__init__(self._run, schedule.hub)
        self.process = process
        self.turn = 0
        self._schedule, self._action = schedule, action
        self.rename(name)

    def rename(self, name: str) -> None:
        """Begins another stream of random numbers."""
        self.name, self.draws, self.ids, self.magnitude = name, 0, 0, 0.0
        self.random = Random((self._schedule.seed << 32) + zlib.crc32(name.encode())).random

    def latency(self) -> float:
        return float(SHORTEST * SPREAD ** (self.random() ** 4))

    def _run(self) -> None:
        try:
            self._action()
        except Exception:  # noqa: BLE001 - the boundary of a thread: the history is told
            if not self.process.is_dead:
                self._schedule.failures.append(f"{self.name} raised\n{format_exc()}")


class Schedule:
    """Whoever pauses is resumed by `run`, the earliest first. Times are seconds."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.now = 0.0
        self.failures: list[str] = []
        self.process = Process("nobody")
        self.hub = getcurrent()
        self._events: list[tuple[float, int, Coroutine, int]] = []
        self._numbers = count()
        self._coroutines: list[Coroutine] = []

    @property
    def coroutine(self) -> Coroutine | None:
        """The one that runs just now; None outside `run`."""
        current = getcurrent()
        return current if isinstance(current, Coroutine) else None

    @contextmanager
    def inside(self, process: Process) -> Iterator[None]:
        """What is done here is done by this process."""
        before, self.process = self.process, process
        process.resume()
        yield
        self.process = before

    def spawn(
        self, name: str, action: Callable[[], object], after: float = 0.0, by: Process | None = None
    ) -> Coroutine:
        coroutine = Coroutine(self, by or self.process, name, action)
        self._coroutines.append(coroutine)
        self._resume_at(self.now + after, coroutine)
        return coroutine

    def pause(self, seconds: float) -> None:
        coroutine, until = self._alive(), self.now + seconds
        if self._events and until < self._events[0][0] and coroutine.process.stands_until <= until:
            # It would be the next to be resumed.
            self.now = until
            return
        self._resume_at(until, coroutine)
        self._switch(coroutine)

    def wait(self, waiters: list[Coroutine], seconds: float | None = None) -> None:
        """Until `wake` is called with the same list, or the time is up."""
        coroutine = self._alive()
        waiters.append(coroutine)
        if seconds is not None:
            self._resume_at(self.now + seconds, coroutine)
        self._switch(coroutine)
        if coroutine in waiters:
            waiters.remove(coroutine)

    def wake(self, waiters: list[Coroutine]) -> None:
        for coroutine in waiters:
            self._resume_at(self.now, coroutine)
        waiters.clear()

    def run(self, until: Callable[[], bool], most_seconds: float) -> None:
        """Raises TimeoutError when it takes longer."""
        while not until():
            if not self._events or self._events[0][0] > most_seconds:
                raise TimeoutError
            at, _, coroutine, turn = heappop(self._events)
            process = coroutine.process
            if coroutine.turn != turn or process.is_dead or coroutine.dead:
                continue
            if process.stands_until > at:
                self._resume_at(process.stands_until, coroutine)
                continue
            self.now = at
            coroutine.turn += 1
            self.process = process
            process.resume()
            coroutine.switch()

    def close(self) -> None:
        """Ends all coroutines; what they do at their end reaches nobody."""
        for coroutine in self._coroutines:
            coroutine.process.is_dead = True
        for coroutine in self._coroutines:
            while not coroutine.dead:
                self.process = coroutine.process
                self.process.resume()
                coroutine.throw(GreenletExit)

    def _resume_at(self, time: float, coroutine: Coroutine) -> None:
        heappush(self._events, (time, next(self._numbers), coroutine, coroutine.turn))

    def _alive(self) -> Coroutine:
        coroutine = self.coroutine
        assert coroutine, "only a coroutine may wait"
        if coroutine.process.is_dead:
            raise GreenletExit
        return coroutine

    def _switch(self, coroutine: Coroutine) -> None:
        self.hub.switch()
        if coroutine.process.is_dead:
            raise GreenletExit


_running: Schedule | None = None


def begin(seed: int) -> Schedule:
    """A new schedule, which is that of this process from now on."""
    global _running
    _running = Schedule(seed)
    return _running


def running() -> Schedule:
    assert _running, "nothing is simulated just now"
    return _running
