"""Celery messages that are lost or come twice."""

import random
from typing import Any

from store.keys import BROKER
from tests.chaos.deployment import Deployment


def lose_messages(deployment: Deployment, _: random.Random) -> None:
    """Whatever waits in the workers' queues is gone."""
    with deployment.servers.primary.admin() as admin:
        for queue in _queues(admin):
            admin.delete(queue)


def repeat_messages(deployment: Deployment, _: random.Random) -> None:
    """Whatever waits in the workers' queues is there twice."""
    with deployment.servers.primary.admin() as admin:
        for queue in _queues(admin):
            messages = admin.lrange(queue, 0, -1)
            if messages:
                admin.rpush(queue, *messages)


def _queues(admin: Any) -> Any:
    return admin.scan_iter(f"{BROKER}*-*", _type="list")
