"""What the store still holds when everybody has gone and all times are over."""

from settings import DAY
from store import keys
from tests.simulator.faults import Target
from tests.simulator.records import read_records
from tests.simulator.world import World

# Counted for ever.
KEPT = {keys.COUNTERS}


def leaked(world: World) -> str:
    """Keys and objects that should be gone; empty when none is there."""
    world.schedule.close()
    told = {session_id for client in world.clients for session_id in client.sessions}
    if world.faults.lost_tail and read_records(world.server.data).sessions.keys() - told:
        # Its key was forgotten, and a request on its way made it again, which nobody knows of to stop it.
        return ""
    store = world.open_store(Target("last"))
    # A worker that lost its session may have written on; such folders are collected once more, a day later.
    for days in (8, 2, 2):
        world.schedule.now += days * DAY
        store.janitor.move_sessions_of(store.workers.left() + store.workers.lost())
        store.janitor.sweep()
    left = sorted({key.decode() for key in world.server.data.names()} - KEPT)
    # The note of an object that was written in the last second is lost with it, and so the object stays.
    objects = [] if world.faults.lost_tail else sorted(world.objects)
    return " ".join([*left, *objects])
