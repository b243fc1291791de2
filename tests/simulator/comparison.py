"""The same calls on a real server: whether it answers what the simulated one did."""

import re
from collections.abc import Iterable
from typing import Any

from redis import Redis

from tests.simulator.commands import COMMANDS, Reply
from tests.simulator.faults import Fault
from tests.simulator.history import run
from tests.simulator.plan import plan
from tests.simulator.server import Call

ASKS = "redis.call('TIME')"
NUMBER = re.compile(rb"-?[0-9]+\.[0-9]+(e[+-]?[0-9]+)?")
# What a set holds comes in any order.
UNORDERED = ("SMEMBERS", "SRANDMEMBER", "HGETALL")


def compare(url: str, seeds: Iterable[int]) -> int:
    """0 when all answers are the same."""
    redis: Any = Redis.from_url(url, protocol=2)
    redis.response_callbacks.clear()
    compared = 0
    for seed in seeds:
        redis.execute_command("FLUSHDB")
        calls: list[Call] = []
        drawn = plan(seed)
        # A real server cannot be made to forget just so much.
        run(drawn._replace(kinds=tuple(kind for kind in drawn.kinds if kind is not Fault.LOST_TAIL)), calls=calls)
        for call in calls:
            real = _answer(redis, call)
            if _ordered(call, _read(real)) != _ordered(call, _read(call.answer)):
                print(f"seed {seed}: {call.command[-400:]} {call.arguments}: {call.answer} here, {real} there")
                return 1
            compared += 1
    print(f"{compared:,} answers are the same")
    return 0


def _answer(redis: Any, call: Call) -> Reply:
    if call.command in COMMANDS:
        return call.answer if call.command == "TIME" else redis.execute_command(call.command, *call.arguments)
    seconds, rest = divmod(round(call.time * 1e6), 1_000_000)
    source = call.command.replace(ASKS, f"{{'{seconds}', '{rest}'}}")
    return redis.execute_command("EVAL", source, 0, *call.arguments)


def _read(answer: Reply) -> Reply:
    """Adapter that are not whole are written in more than one way."""
    if isinstance(answer, list):
        return [_read(part) for part in answer]
    return float(answer) if isinstance(answer, bytes) and NUMBER.fullmatch(answer) else answer


def _ordered(call: Call, answer: Reply) -> Reply:
    return sorted(answer) if call.command in UNORDERED else answer
