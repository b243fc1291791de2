"""One history from its plan: run, and checked."""

import gc
from typing import NamedTuple

from tests.simulator import substitutes
from tests.simulator.faults import Fault
from tests.simulator.invariants import violated
from tests.simulator.leaks import leaked
from tests.simulator.plan import Plan
from tests.simulator.records import read_records
from tests.simulator.results import wrong_results
from tests.simulator.server import Call
from tests.simulator.world import World

# After the last fault, everything has ended by then.
LONGEST_WAIT = 900.0


class Outcome(NamedTuple):
    """`failure` is the first thing that was not as it must be, empty when all was."""

    failure: str
    injected: dict[str, Fault]
    digest: int
    operations: int
    calls: int
    trace: list[str]


_world: World | None = None


def _current() -> World:
    assert _world
    return _world


def prepare() -> None:
    """Done once, before the first history."""
    # What has been loaded stays, and need not be looked through for garbage.
    gc.freeze()
    substitutes.install(lambda: _current().open_store_here(), lambda: _current().make_engine())


def run(plan: Plan, *, each: int = 4, tells: bool = False, calls: list[Call] | None = None) -> Outcome:
    """The records are counted after every so many changes. Those of the server are added to `calls`."""
    global _world
    _world = world = World(plan, calls)
    faults = world.faults
    faults.trace = [] if tells else None
    wrong = _play(world, each)
    # What follows is days later, for which no other server waits.
    world.server.calls = None
    if not wrong:
        wrong = next(wrong_results(world, read_records(world.server.data)), "") or leaked(world)
    else:
        world.schedule.close()
    operations = sum(len(client.issued) for client in world.clients)
    return Outcome(wrong, faults.injected, faults.digest, operations, faults.calls, faults.trace or [])


def _play(world: World, each: int) -> str:
    """Until every client has what it asked for, or something is wrong."""
    schedule, server = world.schedule, world.server
    wrong: list[str] = []

    def is_over() -> bool:
        if server.changes >= looked_at[0] + each:
            looked_at[0] = server.changes
            wrong.extend(filter(None, [violated(server.data, world.plan.settings)]))
        while waiting and waiting[-1].is_done:
            waiting.pop()
        return not waiting or bool(wrong or schedule.failures)

    looked_at, waiting = [0], list(world.clients)
    world.start()
    try:
        schedule.run(is_over, world.plan.calm_after + LONGEST_WAIT)
    except TimeoutError:
        wrong.append(f"not everything has ended: {_unended(world)}")
    return "\n".join([*schedule.failures, *wrong]) or violated(server.data, world.plan.settings)


def _unended(world: World) -> str:
    queues = read_records(world.server.data).queues
    waiting = [client.name for client in world.clients if not client.is_done]
    return f"{dict(queues)}, waited for by {', '.join(waiting)}"
