"""A client's story: its sessions one after the other, and what it was told of every operation."""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from domain.session import Dialect, SessionSpec
from testing.bodies import Json
from tests.chaos.api import Api, End
from tests.chaos.native_api import NativeApi
from tests.chaos.plan import Action, Cancel, Log, Operation, Round, SessionPlan, Stop
from tests.chaos.retrying_client import RetryingClient, checked
from tests.chaos.together_api import TogetherApi

# Operations that may be on their way before the oldest is waited for. While a session sends, as many of its newest
# results must be kept as this and a long round together.
MOST_UNREAD = 24
# For an operation to end once the one before it has: much longer than a trial goes without such a pause.
END_SECONDS = 900.0


@dataclass
class SessionRun:
    """A session as it went: the ids of its operations, how each of them ended, the answers to the cancels, and how
    many operations were refused after it had been stopped."""

    name: str
    plan: SessionPlan
    session_id: str
    spec: SessionSpec
    ids: list[str] = field(default_factory=list)
    ends: dict[int, End] = field(default_factory=dict)
    cancelled: dict[int, bool] = field(default_factory=dict)
    logged: list[tuple[int, Json]] = field(default_factory=list)
    refused: int = 0
    is_stopped: bool = False

    @property
    def accepted(self) -> list[Operation]:
        return self.plan.operations[: len(self.ids)]

    @property
    def origin(self) -> str:
        return self.ids[self.plan.origin]


class Story(threading.Thread):
    """`may_send(n)` blocks until the round that begins with the n-th operation is to be sent, so that a trial lasts as
    long as its faults. `spec_of` reads what the server has made a session of."""

    def __init__(
        self,
        url: str,
        name: str,
        plans: list[SessionPlan],
        may_send: Callable[[int], None],
        spec_of: Callable[[str], SessionSpec],
    ) -> None:
        super().__init__(name=name, daemon=True)
        self.sessions: list[SessionRun] = []
        self.client = RetryingClient(url)
        self.latencies: list[float] = []
        # Until the last operation has been read.
        self.error: Exception | None = RuntimeError("it ended early, by the error in the output")
        self._plans, self._may_send, self._spec_of = plans, may_send, spec_of
        self._native = NativeApi(self.client)
        self._apis: dict[Dialect, Api] = {
            Dialect.NATIVE: self._native,
            Dialect.TOGETHER: TogetherApi(self.client),
        }
        self._unread: deque[tuple[SessionRun, int]] = deque()

    def api(self, session: SessionRun) -> Api:
        return self._apis[session.plan.dialect]

    def run(self) -> None:
        try:
            for plan in self._plans:
                session = self._begin(plan)
                for place, action in enumerate(plan.actions):
                    self._do(session, action, f"{session.name}-{place}")
            self._read_until(0)
            self._delete_checkpoints(self.sessions[-1])
            self.error = None
        except (AssertionError, TimeoutError) as error:
            self.error = error

    def _begin(self, plan: SessionPlan) -> SessionRun:
        before = self.sessions[-1] if self.sessions else None
        name = f"{self.name}-{len(self.sessions)}"
        origin = before.origin if before else None
        if before:
            self._wait_for(before, before.plan.origin)
        api = self._apis[plan.dialect]
        session_id = api.create_session(f"{name}-create", sum(name.encode()), origin)
        session = SessionRun(name, plan, session_id, self._spec_of(session_id))
        self.sessions.append(session)
        if before:
            self._read_until(0)
            self._delete_checkpoints(before)
        return session

    def _do(self, session: SessionRun, action: Action, key: str) -> None:
        match action:
            case Round():
                self._read_until(MOST_UNREAD)
                self._may_send(len(self.latencies))
            case Operation():
                self._send(session, action, key)
            case Cancel(number):
                answer = self._native.cancel(session.session_id, session.ids[number], key)
                session.cancelled[number] = answer
            case Log(name, step, value):
                self._native.log(session.session_id, name, step, value, key)
                session.logged.append((step, {name: value}))
            case Stop(with_resources):
                self._wait_for(session, session.plan.origin)
                self.api(session).stop(session.session_id, key, with_resources=with_resources)
                session.is_stopped = True

    def _send(self, session: SessionRun, operation: Operation, key: str) -> None:
        api, began = self.api(session), time.monotonic()
        response = api.send(session.session_id, operation, key)
        if session.is_stopped:
            assert response.status_code == 400, f"accepted after the stop: {response.text}"
            session.refused += 1
            return
        session.ids.append(api.operation_id(checked(response)))
        self._unread.append((session, len(session.ids) - 1))
        self.latencies.append(time.monotonic() - began)

    def _read_until(self, most_unread: int) -> None:
        """In their order, until no more than so many are unread."""
        while len(self._unread) > most_unread:
            session, number = self._unread.popleft()
            self._wait_for(session, number)

    def _wait_for(self, session: SessionRun, number: int) -> None:
        """Raises TimeoutError."""
        deadline = time.monotonic() + END_SECONDS
        while number not in session.ends:
            operation, id = session.plan.operations[number], session.ids[number]
            if end := self.api(session).end(session.session_id, operation, id):
                session.ends[number] = end
            elif time.monotonic() > deadline:
                raise TimeoutError(f"{session.name} operation {number} ({operation.kind}) has not ended")

    def _delete_checkpoints(self, session: SessionRun) -> None:
        for number in sorted(session.plan.deleted):
            end = session.ends.get(number)
            if end and end.data:
                self.client.delete(f"/v1/rl/checkpoints/{end.data['checkpoint_id']}")
