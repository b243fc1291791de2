"""What goes wrong, and where: drawn at each call, message and job from the random numbers of the coroutine it meets."""

import zlib
from collections.abc import Callable, Sequence
from enum import StrEnum
from random import Random

from tests.simulator.schedule import Coroutine, Process, Schedule
from tests.simulator.server import SYNC_SECONDS, Server


class Fault(StrEnum):
    LOST_CALL = "call lost"
    LOST_ANSWER = "answer lost"
    REPEATED_CALL = "call sent again"
    DOUBLED_CALL = "call carried out twice"
    KILLED_BEFORE = "process killed before a call"
    KILLED_AFTER = "process killed after a call"
    STALLED_BEFORE = "process stood still before a call"
    STALLED_AFTER = "process stood still after a call"
    CUT = "process cut off"
    DRAINED = "worker asked to end"
    AWAY = "server away"
    READS_ONLY = "server took no writes"
    LOST_TAIL = "server lost its last second"
    OBJECTS_AWAY = "objects away"
    LOST_MESSAGE = "message lost"
    REPEATED_MESSAGE = "message delivered twice"
    LATE_MESSAGE = "message late"
    STUCK_JOB = "engine stuck"
    DUPLICATE_REQUEST = "request sent twice at once"


OF_MESSAGES_AND_JOBS = (
    Fault.LOST_MESSAGE, Fault.REPEATED_MESSAGE, Fault.LATE_MESSAGE, Fault.STUCK_JOB, Fault.DUPLICATE_REQUEST,
)  # fmt: skip
OF_CALLS = tuple(fault for fault in Fault if fault not in OF_MESSAGES_AND_JOBS)


# At most so many seconds a process stands still, which is more often than not for longer than its heartbeat may be
# missed, and other things last.
STANDS, LASTS = 24.0, 10.0


class Target(Process):
    """A process that things are done to."""

    # How many times as often as elsewhere a fault meets a call of its.
    exposure = 1.0

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.cut_until = 0.0

    def kill(self) -> None:
        """Raises what no code of the product catches: whoever asked for it is gone too."""
        raise AssertionError(f"{self.name} is not one that is killed")

    def drain(self) -> None:
        """Asks it to end in order."""


class Faults:
    """Those of one history: some kinds of them, so often, until a moment; but for those that are `suppressed`."""

    def __init__(self, schedule: Schedule, server: Server, kinds: Sequence[Fault], rate: float, until: float,
                 suppressed: frozenset[str]) -> None:  # fmt: skip
        self._schedule, self._server = schedule, server
        self._of_calls = [fault for fault in kinds if fault in OF_CALLS]
        self._others = frozenset(kinds)
        self._rate, self.until, self._suppressed = rate, until, suppressed
        self.injected: dict[str, Fault] = {}
        self._lasting: dict[Fault, float] = {}
        self.restarts = 0
        self.lost_tail = False
        self.trace: list[str] | None = None
        self.digest = self.calls = 0

    @property
    def may_forget(self) -> bool:
        """Whether the server may lose what it has been told."""
        return Fault.LOST_TAIL in self._others

    def record(self, coroutine: Coroutine, what: str) -> None:
        """Keeps what happens in which order: as a number always, as text when somebody will read it."""
        self.digest = zlib.crc32(f"{coroutine.name} {what}".encode(), self.digest)
        if self.trace is not None:
            self.trace.append(f"{self._schedule.now:9.3f} {coroutine.name}: {what}")

    def of_call(self, coroutine: Coroutine) -> Fault | None:
        """The next fault of a call."""
        coroutine.draws += 1
        self.calls += 1
        process = coroutine.process
        assert isinstance(process, Target)
        if coroutine.random() >= self._rate * process.exposure or not self._of_calls:
            return None
        place, coroutine.magnitude = int(coroutine.random() * len(self._of_calls)), coroutine.random()
        return self._taken(coroutine, self._of_calls[place])

    def lasts(self, fault: Fault) -> bool:
        """Whether it is so just now for all processes."""
        return self._lasting.get(fault, 0.0) > self._schedule.now

    def happens(self, coroutine: Coroutine, fault: Fault, often: float = 1.0) -> bool:
        """Whether this one does, now that it could; `often` as often as a fault of a call."""
        coroutine.draws += 1
        return coroutine.random() < self._rate * often and fault in self._others and bool(self._taken(coroutine, fault))

    def _taken(self, coroutine: Coroutine, fault: Fault) -> Fault | None:
        id = f"{coroutine.name}#{coroutine.draws}"
        if self._schedule.now >= self.until or id in self._suppressed:
            return None
        self.injected[id] = fault
        self.record(coroutine, f"[{fault}]")
        return fault

    def before(self, coroutine: Coroutine, fault: Fault) -> None:
        """What it does ahead of its call."""
        process, until = coroutine.process, self._schedule.now + LASTS * coroutine.magnitude
        assert isinstance(process, Target)
        match fault:
            case Fault.KILLED_BEFORE:
                process.kill()
            case Fault.STALLED_BEFORE:
                self._stand(coroutine)
            case Fault.DRAINED:
                process.drain()
            case Fault.CUT:
                process.cut_until = until
            case Fault.AWAY | Fault.READS_ONLY | Fault.OBJECTS_AWAY:
                self._lasting[fault] = until
            case Fault.LOST_TAIL:
                self._restart(until)

    def after(self, coroutine: Coroutine, fault: Fault, again: Callable[[], object]) -> None:
        """What it does between its call and the answer."""
        process = coroutine.process
        assert isinstance(process, Target)
        match fault:
            case Fault.KILLED_AFTER:
                process.kill()
            case Fault.STALLED_AFTER:
                self._stand(coroutine)
            case Fault.REPEATED_CALL:
                self._schedule.pause(coroutine.latency())
                again()
            case Fault.DOUBLED_CALL:
                # Sent again when the first was thought to be lost, and the server found both when it came to itself.
                again()

    def _stand(self, coroutine: Coroutine) -> None:
        coroutine.process.stands_until = self._schedule.now + STANDS * coroutine.magnitude
        self._schedule.pause(0)

    def _restart(self, until: float) -> None:
        self._server.lose_tail(SYNC_SECONDS * Random(self.digest).random())
        self.lost_tail = True
        self.restarts += 1
        self._lasting[Fault.AWAY] = until
