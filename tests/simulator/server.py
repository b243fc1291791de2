"""A server of one's own: the product's scripts, as they are, by LuaJIT on plain dicts."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from lupa import luajit21

from store.scripts import LUA
from tests.simulator.commands import COMMANDS, Data, Reply, text_of

# What all scripts begin with is run once: it makes tables and functions, and calls nothing.
SHARED = (LUA / "common.lua").read_text()
FRAME = "local redis = ... {before}{shared} return function(ARGV) {own} end"
READING = ("GET", "HGET", "HMGET", "HGETALL", "HEXISTS", "EXISTS", "SCARD", "SISMEMBER", "SMEMBERS", "SRANDMEMBER",
           "ZCARD", "ZSCORE", "ZRANK", "ZRANGE", "ZREVRANGE", "ZRANGEBYSCORE", "XRANGE", "TIME", "PING")  # fmt: skip
NAMES = {name.encode(): handler for name, handler in COMMANDS.items()}
EPOCH = 1_000_000.0
# The append-only file is synced so often: what was told since may be lost.
SYNC_SECONDS = 1.0

_lua = luajit21.LuaRuntime(encoding=None, unpack_returned_tuples=False)
_table: Callable[[Any], Any] = _lua.table_from


class Call(NamedTuple):
    """What was asked of a server, when by its clock, and its answer."""

    time: float
    command: str
    arguments: tuple[bytes, ...]
    answer: Reply


class Server:
    """`clock` gives seconds since the history began. `run` and `execute` are atomic."""

    def __init__(self, clock: Callable[[], float], *, keeps_a_file: bool, calls: list[Call] | None = None) -> None:
        """One that keeps a file can lose its tail. `calls` is a list to which all are added."""
        self._clock = clock
        self._keeps_a_file, self.calls = keeps_a_file, calls
        self._file: list[tuple[float, str, tuple[bytes, ...]]] = []
        self._time = EPOCH
        self.changes = 0
        self.data = Data(lambda: self._time)

    def execute(self, command: str, *arguments: bytes) -> Reply:
        """A command, or a script by its source."""
        self._time = EPOCH + self._clock()
        if command not in READING:
            self.changes += 1
            if self._keeps_a_file:
                self._file.append((self._time, command, arguments))
        answer = self._execute(command, arguments)
        if self.calls is not None:
            self.calls.append(Call(self._time, command, arguments, answer))
        return answer

    def lose_tail(self, seconds: float) -> None:
        """Its power fails: what came in the last `seconds` has never been."""
        end = EPOCH + self._clock() - seconds
        kept = [entry for entry in self._file if entry[0] <= end]
        self._file = kept
        self.data = Data(lambda: self._time)
        for self._time, command, arguments in kept:
            self._execute(command, arguments)
        self._time = EPOCH + self._clock()

    def _execute(self, command: str, arguments: tuple[bytes, ...]) -> Reply:
        if command in COMMANDS:
            return self.data.execute(command, *arguments)
        global _called
        _called = self.data
        return _from_lua(_compiled(command)(_table(arguments)))


# The data that `redis.call` is about: those of the one server that runs a script.
_called = Data(lambda: 0.0)


def _call(command: bytes, *arguments: Any) -> Any:
    for part in arguments:
        if type(part) is not bytes:
            arguments = tuple(part if type(part) is bytes else text_of(float(part)) for part in arguments)
            break
    reply = NAMES[command](_called, *arguments)
    if reply is None:
        return False
    return _table([False if part is None else part for part in reply]) if type(reply) is list else reply


_redis = _table({b"call": _call, b"pcall": _call})


@cache
def _compiled(source: str) -> Callable[..., Any]:
    before, shared, own = source.partition(SHARED)
    assert shared, "every script begins with what all share"
    frame = FRAME.format(before=before, shared=shared, own=own)
    function: Callable[..., Any] = _lua.eval(b"assert(loadstring(...))", frame.encode())(_redis)
    return function


def _from_lua(value: Any) -> Reply:
    if value is None or value is False:
        return None
    if value is True:
        return 1
    if isinstance(value, float):
        return int(value)
    if luajit21.lua_type(value) == "table":
        return [_from_lua(value[place]) for place in range(1, len(value) + 1)]
    return value
