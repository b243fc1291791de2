"""A pause without faults, in which all that was accepted before has to end."""

import time
from contextlib import suppress

import redis

from domain.api_key import ANONYMOUS
from store import keys
from tests.chaos.deployment import Deployment

POLL_SECONDS = 0.1


def stuck_sessions(deployment: Deployment, seconds: float) -> set[str]:
    """Waits until every operation that has been accepted by now has ended: the sessions of which one has not when the
    time is up."""
    waiting: set[bytes] | None = None
    deadline = time.monotonic() + seconds
    with deployment.servers.primary.admin() as admin:
        while time.monotonic() < deadline:
            with suppress(redis.ConnectionError, redis.TimeoutError):  # it is being started again
                found = admin.smembers(keys.owner_waiting(ANONYMOUS))
                waiting = found if waiting is None else waiting & found
                if not waiting:
                    return set()
            time.sleep(POLL_SECONDS)
        return {admin.hget(keys.operation(id.decode()), "session").decode() for id in waiting or ()}
