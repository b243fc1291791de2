"""A client: sends requests, sends again what it got no answer to, and reads until everything has ended."""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from domain.operation import Operation, OperationKind, OperationStatus
from store.errors import (
    FullError,
    NotCancellableError,
    NotFoundError,
    ObjectsAwayError,
    SessionNotActiveError,
    Unavailable,
)
from tests.simulator.api import Api, GoneError
from tests.simulator.faults import Fault, Faults
from tests.simulator.plan import Act, Program, Step
from tests.simulator.requests import request_of
from tests.simulator.schedule import Coroutine, Schedule

T = TypeVar("T")

# How long it waits before it asks again: at least, and how much more at first, and at most.
PAUSE, MORE, MOST = 0.3, 1.0, 8.0


class Issued:
    """One POST that was answered, and what became of it."""

    def __init__(self, step: Step, kind: OperationKind, session_id: str, operation_id: str) -> None:
        self.step, self.kind, self.session_id, self.id = step, kind, session_id, operation_id
        self.ended: Operation | None = None
        self.value: int | None = None
        self.is_cancelled = False
        # By a server that lost its last second.
        self.is_forgotten = False


class Client:
    """`stopped` are the sessions that it asked to stop, `origins` the checkpoints that sessions went on from."""

    def __init__(self, schedule: Schedule, faults: Faults, apis: list[Api], program: Program) -> None:
        self._schedule, self._faults, self._apis, self._program = schedule, faults, apis, program
        self.name, self.publishes = program.name, program.publishes
        self.issued: list[Issued] = []
        self.sessions: list[str] = []
        self.origins: dict[str, str] = {}
        self.stopped: set[str] = set()
        self.is_done = False

    @property
    def _coroutine(self) -> Coroutine:
        coroutine = self._schedule.coroutine
        assert coroutine
        return coroutine

    def run(self) -> None:
        self._begin_session(f"{self._program.name}.begin", None)
        for step in self._program.steps:
            self._coroutine.rename(step.name)
            self._take(step)
        self._coroutine.rename(f"{self._program.name}.end")
        self._end_session(waits=self._program.is_patient)
        if self._faults.may_forget:
            # What was stopped before the last fault may run again.
            self._schedule.pause(max(0.0, self._faults.until - self._schedule.now))
            for session_id in self.sessions:
                self._until(lambda api, id=session_id: self._has_stopped(api, id))  # type: ignore[misc]
        self.is_done = True

    def _take(self, step: Step) -> None:
        match step.what:
            case Act.CANCEL:
                self._cancel()
            case Act.RETRY:
                self._retry(step.number)
            case Act.WAIT:
                self._follow(self._current[-1:])
            case Act.PAUSE:
                self._schedule.pause(10 * self._coroutine.random())
            case Act.RESUME:
                self._resume(step)
            case OperationKind() as kind:
                self._ask(step, kind)

    @property
    def _current(self) -> list[Issued]:
        """What was asked of the current session."""
        return [issued for issued in self.issued if issued.session_id == self.sessions[-1]]

    def _begin_session(self, key: str, origin: str | None) -> None:
        seed = len(self.sessions) + 1
        session_id = self._post(lambda api: api.create_session(key, seed, self.publishes, origin))
        if session_id is None:
            self._begin_session(f"{key}-again", None)
            return
        self.sessions.append(session_id)
        if origin:
            self.origins[session_id] = origin

    def _end_session(self, *, waits: bool) -> None:
        if waits:
            self._follow(self._current)
        session_id = self.sessions[-1]
        self.stopped.add(session_id)
        self._retried(lambda api: api.stop(session_id))
        self._follow(self._current)
        self._until(lambda api: self._has_stopped(api, session_id))

    def _has_stopped(self, api: Api, session_id: str) -> bool:
        if self._faults.lost_tail:
            # The first time may have been forgotten.
            api.stop(session_id)
        return api.has_ended(session_id)

    def _resume(self, step: Step) -> None:
        """To a new session, from the last checkpoint of the old one."""
        saved = [issued for issued in self._current if issued.kind is OperationKind.TRAINING_CHECKPOINT]
        self._end_session(waits=True)
        completed = [issued.id for issued in saved if issued.ended and issued.ended.status is OperationStatus.COMPLETED]
        origin = completed[-1] if completed else None
        self._begin_session(step.name, origin)
        if origin and step.number % 2:
            self._retried(lambda api: api.delete_checkpoint(origin))

    def _ask(self, step: Step, kind: OperationKind) -> None:
        session_id = self.sessions[-1]
        request = request_of(kind, step.number)
        operation_id = self._post(lambda api: api.accept(session_id, kind, request, step.name))
        if operation_id is not None:
            self.issued.append(Issued(step, kind, session_id, operation_id))

    def _post(self, action: Callable[[Api], str]) -> str | None:
        """Now and then it is sent a second time before the first is answered, which nobody listens to."""

        def send() -> None:
            with suppress(*Unavailable, ObjectsAwayError, FullError, NotFoundError, SessionNotActiveError, GoneError):
                action(self._api())

        if self._faults.happens(self._coroutine, Fault.DUPLICATE_REQUEST, often=10):
            self._schedule.spawn(f"{self._coroutine.name}~", send)
        return self._retried(action)

    def _retry(self, number: int) -> None:
        known = [issued for issued in self.issued if not issued.is_forgotten]
        if not known:
            return
        first = known[number % len(known)]
        request = request_of(first.kind, first.step.number)
        again = self._retried(lambda api: api.accept(first.session_id, first.kind, request, first.step.name))
        if again not in (first.id, None) and not self._faults.lost_tail:
            raise AssertionError(f"{first.id} was asked for again, and the answer was {again}")

    def _cancel(self) -> None:
        if self._current:
            last = self._current[-1]
            last.is_cancelled = True
            self._retried(lambda api: api.cancel(last.session_id, last.id))

    def _follow(self, issued: list[Issued]) -> None:
        # They end in order, so that whoever waits for the last waits for all.
        for one in reversed(issued):
            if not (one.ended or one.is_forgotten):
                self._until(lambda api, one=one: self._read(api, one))  # type: ignore[misc]

    def _read(self, api: Api, issued: Issued) -> bool:
        try:
            operation, value = api.read(issued.session_id, issued.id)
        except NotFoundError:
            if not self._faults.lost_tail:
                raise
            issued.is_forgotten = True
            return True
        if operation.status.is_ended:
            issued.ended, issued.value = operation, value
        return operation.status.is_ended

    def _until(self, condition: Callable[[Api], bool]) -> None:
        """Or until nothing is known of it any more."""
        most = MORE
        while self._retried(condition) is False:
            self._schedule.pause(PAUSE + most * self._coroutine.random())
            most = min(2 * most, MOST)

    def _retried(self, action: Callable[[Api], T]) -> T | None:
        """The answer, however often it has to be asked for; None for what cannot be had any more."""
        while True:
            try:
                return action(self._api())
            except (*Unavailable, ObjectsAwayError, FullError, GoneError):
                self._schedule.pause(PAUSE + MORE * self._coroutine.random())
            except (SessionNotActiveError, NotCancellableError):
                return None
            except NotFoundError:
                if not self._faults.lost_tail:
                    raise
                return None

    def _api(self) -> Api:
        """Whichever the connection leads to."""
        api = self._apis[int(self._coroutine.random() * len(self._apis))]
        self._coroutine.process = api
        return api
