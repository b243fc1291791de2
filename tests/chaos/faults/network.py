"""Connections between Valkey and those who use it: cut by the server, refused to one of them, or silent."""

import random
import time

from tests.chaos.deployment import WORKERS, Deployment

# Longer than a heartbeat may be missed.
AWAY_SECONDS = 4.0


def cut_connections(deployment: Deployment, _: random.Random) -> None:
    """Everyone's, once."""
    with deployment.servers.primary.admin() as admin:
        admin.client_kill_filter(_type="normal", skipme=True)


def cut_off_worker(deployment: Deployment, rng: random.Random) -> None:
    """It alone: its connections end, and new ones are refused."""
    proxy = deployment.proxies[rng.choice(WORKERS)]
    proxy.cut()
    time.sleep(AWAY_SECONDS)
    proxy.restore()


def blackhole_worker(deployment: Deployment, rng: random.Random) -> None:
    """It alone: its connections stay open and carry nothing any more."""
    _blackhole(deployment, rng.choice(WORKERS))


def blackhole_api(deployment: Deployment, _: random.Random) -> None:
    _blackhole(deployment, "api")


def _blackhole(deployment: Deployment, name: str) -> None:
    deployment.proxies[name].blackhole()
    time.sleep(AWAY_SECONDS)
    deployment.proxies[name].restore()
