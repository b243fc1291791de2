"""Celery messages that are lost or come twice, and connections that are cut, all by the server."""

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import redis

from stack.stack import Stack
from store.keys import BROKER


def lose_messages(stack: Stack, _: random.Random) -> None:
    """Whatever waits in the workers' queues is gone."""
    _on_server(stack, lambda server: [server.delete(queue) for queue in _queues(server)])


def repeat_messages(stack: Stack, _: random.Random) -> None:
    """Whatever waits in the workers' queues is there twice."""

    def repeat(server: Any) -> None:
        for queue in _queues(server):
            messages = server.lrange(queue, 0, -1)
            if messages:
                server.rpush(queue, *messages)

    _on_server(stack, repeat)


def cut_connections(stack: Stack, _: random.Random) -> None:
    _on_server(stack, lambda server: server.client_kill_filter(_type="normal", skipme=True))


def _queues(server: Any) -> Any:
    return server.scan_iter(f"{BROKER}*-*", _type="list")


def _on_server(stack: Stack, action: Callable[[Any], object]) -> None:
    url = stack.processes["worker-1"].service.environment["CELERITY_REDIS_URL"]
    # When it is being started again there is nothing to be done to it.
    with redis.Redis.from_url(url, socket_timeout=5.0) as server, suppress(redis.ConnectionError):
        action(server)
