"""A process whose host has the wrong time."""

import random

from tests.chaos.deployment import Deployment

OFFSETS = (-86_400, -60, -5, 5, 60, 86_400)


def jump_clock(deployment: Deployment, rng: random.Random) -> None:
    """A worker's or the API's wall clock, forwards or backwards, until it jumps again."""
    deployment.clocks.set(rng.choice(list(deployment.proxies)), rng.choice(OFFSETS))
