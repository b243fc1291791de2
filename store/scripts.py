"""The atomic scripts: Lua files of store/lua, each with the tables of Python and common.lua before it.

A script names its arguments in the statement that unpacks ARGV, and is run with those names.
"""

import re
from functools import cache
from pathlib import Path
from typing import Any

from store import counters, keys, transitions
from store.connection import RawRedis

LUA = Path(__file__).parent / "lua"
PARAMETERS = re.compile(r"^local ([\w\s,]+?) = unpack\(ARGV\)", re.MULTILINE)


@cache
def _text(name: str) -> str:
    return (LUA / f"{name}.lua").read_text()


@cache
def _source(name: str) -> str:
    return keys.lua_table() + transitions.lua_table() + counters.lua_table() + _text("common") + _text(name)


@cache
def _parameters(name: str) -> tuple[str, ...]:
    found = PARAMETERS.search(_text(name))
    assert found, f"{name}.lua does not name its arguments"
    return tuple(each.strip() for each in found[1].split(","))


def arranged(name: str, arguments: dict[str, Any], rest: tuple[Any, ...] = ()) -> list[Any]:
    """A script's ARGV. None becomes '', True '1' and False ''."""
    parameters = _parameters(name)
    assert arguments.keys() == set(parameters), f"{name}.lua takes {parameters}, and not {tuple(arguments)}"
    values = (arguments[each] for each in parameters)
    return [*(_plain(value) for value in values), *rest]


def _plain(value: Any) -> Any:
    if isinstance(value, bool):
        return "1" if value else ""
    return "" if value is None else value


class Scripts:
    """Runs a script by its file's name. All run on one server; see store/keys.py."""

    def __init__(self, redis: RawRedis) -> None:
        self._redis = redis
        names = [path.stem for path in LUA.glob("*.lua") if path.stem != "common"]
        self._scripts = {name: redis.register_script(_source(name)) for name in names}

    def run(self, script: str, /, *rest: Any, **arguments: Any) -> Any:
        """The script's reply; `rest` follows the arguments that it names."""
        return self._scripts[script](args=arranged(script, arguments, rest))
