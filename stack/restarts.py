"""Starting again what has ended of a stack that has been ready: soon at first, then after ever longer pauses."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from stack.log import Log
from stack.process import Process
from stack.stack import Stack, StackError

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 30.0
# Who has lived this long was well: its next end is the first in a row.
STABLE_SECONDS = 300.0
# So many ends in a row, each by itself and with the same exit code: it does not get ready, and will not.
MOST_ENDS = 5
SIGNALLED = 128


@dataclass
class Streak:
    """Short lives of one service, one after the other: how many, and how many of the last ended with one `code`."""

    ends: int = 0
    same: int = 0
    code: int = 0

    def add(self, code: int) -> None:
        self.same = self.same + 1 if code == self.code else 1
        self.ends, self.code = self.ends + 1, code

    @property
    def pause(self) -> float:
        return min(FIRST_PAUSE * 2.0 ** (self.ends - 1), LONGEST_PAUSE)

    @property
    def is_crash_loop(self) -> bool:
        # Who was killed did not choose to end. An operation that kills its workers is given up by the store.
        return self.same >= MOST_ENDS and self.code < SIGNALLED


class Restarts:
    """Of the services of a stack. To be asked again and again, by the thread that the stack belongs to."""

    def __init__(self, stack: Stack, log: Log, clock: Callable[[], float] = time.monotonic) -> None:
        self._stack, self._log, self._clock = stack, log, clock
        self._began = dict.fromkeys(stack.processes, clock())
        self._due: dict[str, float] = {}
        self._streaks: dict[str, Streak] = {}

    def look(self) -> None:
        """Starts what is due. Raises StackError for a service that ends by itself, with one exit code, each time."""
        for name, process in list(self._stack.processes.items()):
            code = process.poll()
            if code is None:
                continue
            if name not in self._due:
                self._due[name] = self._clock() + self._pause_after(process, code)
            elif self._clock() >= self._due[name]:
                del self._due[name]
                self._stack.run(process.service)
                self._began[name] = self._clock()

    def _pause_after(self, process: Process, code: int) -> float:
        process.kill()  # and with it what it had started, which may hold its port
        name = process.service.name
        lived = self._clock() - self._began[name]
        streak = Streak() if lived >= STABLE_SECONDS else self._streaks.get(name, Streak())
        self._streaks[name] = streak
        streak.add(code)
        if streak.is_crash_loop:
            reason = f"{name} ended with exit code {code}, {streak.same} times in a row; what it logged says why"
            raise StackError(reason, code or 1)
        self._log.write("stack", f"{name} ended with exit code {code}; starting it again in {streak.pause:.0f} s")
        return streak.pause
