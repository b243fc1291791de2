"""The connection to Redis, as the store uses it: raw bytes, quick to say that Redis is away."""

from typing import Any

from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

# redis-py annotates every reply as the union of what decoding and non-decoding clients give,
# which no caller can use; the store's own signatures are typed where they leave this client.
RawRedis = Any


def connect(url: str) -> RawRedis:
    """A client whose connections are made lazily, so that it may be made before a fork."""
    return Redis.from_url(
        url,
        socket_connect_timeout=2.0,
        socket_timeout=10.0,
        health_check_interval=30,
        retry=Retry(NoBackoff(), 1),
    )
