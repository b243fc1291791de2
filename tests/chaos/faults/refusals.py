"""A primary that is there and takes no writes, and one that hands over to its replica."""

import random
import time

from tests.chaos.deployment import Deployment
from tests.refusing import refusing

# Longer than a heartbeat may be missed.
REFUSING_SECONDS = 4.0


def readonly(deployment: Deployment, _: random.Random) -> None:
    _refuse(deployment, "READONLY")


def misconf(deployment: Deployment, _: random.Random) -> None:
    """Its snapshot cannot be written."""
    _refuse(deployment, "MISCONF")


def noreplicas(deployment: Deployment, _: random.Random) -> None:
    _refuse(deployment, "NOREPLICAS")


def out_of_memory(deployment: Deployment, _: random.Random) -> None:
    """It has `maxmemory`."""
    _refuse(deployment, "OOM")


def fail_over(deployment: Deployment, _: random.Random) -> None:
    deployment.fail_over()


def _refuse(deployment: Deployment, code: str) -> None:
    deployment.servers.await_primary()
    with refusing(deployment.servers.primary, code):
        time.sleep(REFUSING_SECONDS)
