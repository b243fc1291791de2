"""A process' connection to the server, on which anything may happen to each call."""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, TypeVar

from obstore.exceptions import GenericError
from redis._parsers.response_callbacks import get_response_callbacks
from redis.commands import CoreCommands
from redis.exceptions import ConnectionError

from store.refusals import RefusedError
from store.scripts import LUA
from tests.simulator.commands import Reply
from tests.simulator.faults import Fault, Faults, Target
from tests.simulator.schedule import Schedule
from tests.simulator.server import READING, Server

T = TypeVar("T")

CALLBACKS = get_response_callbacks(user_protocol=2, legacy_responses=True)
SLOW_ANSWERS = 0.25


class Connection:
    """One call at a time reaches the server, and its answer the caller, unless a fault has it otherwise."""

    def __init__(self, schedule: Schedule, server: Server, faults: Faults, process: Target) -> None:
        self._schedule, self._faults, self._process = schedule, faults, process
        self.server = server

    def call(self, name: str, reads: bool, action: Callable[[], T]) -> T:
        """The action's answer, as soon as it is the caller's turn again. Raises what a client library would."""
        coroutine, faults = self._schedule.coroutine, self._faults
        if coroutine is None:
            return action()
        fault = faults.of_call(coroutine)
        self._schedule.pause(coroutine.latency())
        restarts = faults.restarts
        if fault:
            faults.before(coroutine, fault)
        self._refuse_if_away(reads)
        if fault is Fault.LOST_CALL:
            raise ConnectionError("the call was lost")
        faults.record(coroutine, name)
        answer = action()
        if fault:
            faults.after(coroutine, fault, action)
        if fault is Fault.LOST_ANSWER:
            raise ConnectionError("the answer was lost")
        if coroutine.random() < SLOW_ANSWERS:
            self._schedule.pause(coroutine.latency())
        if restarts != faults.restarts:
            raise ConnectionError("the server was started again before its answer came")
        return answer

    def reach(self, action: Callable[[], T]) -> T:
        """The answer of the object store, some time later. Raises what obstore would."""
        coroutine = self._schedule.coroutine
        if coroutine:
            self._schedule.pause(coroutine.latency())
            if self._faults.lasts(Fault.OBJECTS_AWAY):
                raise GenericError("the object store does not answer")
        return action()

    def _refuse_if_away(self, reads: bool) -> None:
        if self._faults.lasts(Fault.AWAY) or self._process.cut_until > self._schedule.now:
            raise ConnectionError("the server cannot be reached")
        if self._faults.lasts(Fault.READS_ONLY) and not reads:
            raise RefusedError("You can't write against a read only replica.")


class SimulatedRedis(CoreCommands):
    """The client library's commands, by a simulated connection."""

    _event_dispatcher: Any = None

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def execute_command(self, command: str, *arguments: Any, **options: Any) -> Any:
        encoded = _all_encoded(arguments)
        answer = self._connection.call(
            command, command in READING, lambda: self._connection.server.execute(command, *encoded)
        )
        return _read(command, answer, options)

    def register_script(self, script: str) -> Callable[..., Reply]:  # type: ignore[override]
        name = _name_of(script)
        server = self._connection.server

        def run(args: Iterable[Any]) -> Reply:
            encoded = _all_encoded(args)
            return self._connection.call(name, False, lambda: server.execute(script, *encoded))

        return run

    def pipeline(self, transaction: bool = True) -> "Pipeline":
        return Pipeline(self._connection, transaction)

    def close(self) -> None:
        """Nothing is open."""


class Pipeline(CoreCommands):
    """Commands that are sent together: at one moment in a transaction, else in two parts."""

    _event_dispatcher: Any = None

    def __init__(self, connection: Connection, transaction: bool) -> None:
        self._connection, self._is_atomic = connection, transaction
        self._sent: list[tuple[str, list[bytes], dict[str, Any]]] = []

    def execute_command(self, command: str, *arguments: Any, **options: Any) -> "Pipeline":
        self._sent.append((command, _all_encoded(arguments), options))
        return self

    def execute(self) -> list[Any]:
        sent, self._sent = self._sent, []
        if not sent:
            return []
        reads = all(command in READING for command, _, _ in sent)
        if self._is_atomic or len(sent) < 3:
            answers = self._connection.call("pipeline", reads, lambda: self._run(sent))
        else:
            half = len(sent) // 2
            answers = self._connection.call("pipeline", reads, lambda: self._run(sent[:half]))
            answers += self._connection.call("pipeline", reads, lambda: self._run(sent[half:]))
        return [_read(command, answer, options) for (command, _, options), answer in zip(sent, answers, strict=True)]

    def _run(self, sent: list[tuple[str, list[bytes], dict[str, Any]]]) -> list[Reply]:
        return [self._connection.server.execute(command, *arguments) for command, arguments, _ in sent]

    def __enter__(self) -> "Pipeline":
        return self

    def __exit__(self, *_: object) -> None:
        return None


def _all_encoded(values: Iterable[Any]) -> list[bytes]:
    """As redis-py sends them."""
    return [
        value if (kind := type(value)) is bytes
        else value.encode() if kind is str
        else repr(value).encode() if kind is float
        else str(value).encode()
        for value in values
    ]  # fmt: skip


def _read(command: str, answer: Reply, options: dict[str, Any]) -> Any:
    options.pop("keys", None)
    callback = CALLBACKS.get(command)
    return callback(answer, **options) if callback else answer


@cache
def _name_of(script: str) -> str:
    """For people: the end of a script tells it from the others."""
    return next(path.stem for path in LUA.glob("*.lua") if script.endswith(path.read_text()))
