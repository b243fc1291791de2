"""The atomic scripts: Lua files of store/lua, each with the key table and the moves before it."""

from functools import cache
from pathlib import Path
from typing import Any

from store import counts, keys, transitions
from store.connection import RawRedis

LUA = Path(__file__).parent / "lua"


@cache
def _source(name: str) -> str:
    shared = (LUA / "common.lua").read_text()
    return keys.lua_table() + transitions.lua_table() + counts.lua_table() + shared + (LUA / f"{name}.lua").read_text()


class Scripts:
    """Runs a script by its file's name. All run on one server; see store/keys.py."""

    def __init__(self, redis: RawRedis) -> None:
        self._redis = redis
        self._scripts = {path.stem: redis.register_script(_source(path.stem)) for path in LUA.glob("*.lua")}

    def run(self, name: str, *arguments: Any) -> Any:
        """The script's reply; arguments are its ARGV."""
        return self._scripts[name](args=arguments)
