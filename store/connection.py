"""The connection to Redis, as the store uses it: raw bytes, quick to say that Redis is away."""

from typing import Any

from redis import BlockingConnectionPool, Redis
from redis.backoff import NoBackoff
from redis.exceptions import ResponseError
from redis.retry import Retry

from store.errors import WriteRefusedError

# How Redis begins an error that says nothing of the command: its disk is full, its replicas are away, a script runs.
PASSING = ("MISCONF", "NOREPLICAS", "BUSY")

# More threads than this wait for each other: 256 requests that hear of one end at once would otherwise open as many
# connections, and redis-py refuses more than 100. Commands take less than a millisecond.
MOST_CONNECTIONS = 64
ANSWER_SECONDS = 10.0

# redis-py annotates every reply as the union of what decoding and non-decoding clients give,
# which no caller can use; the store's own signatures are typed where they leave this client.
RawRedis = Any


class StoreRedis(Redis):
    """Tells errors that pass from errors that are ours."""

    def parse_response(self, connection: Any, command_name: Any, **options: Any) -> Any:
        try:
            return super().parse_response(connection, command_name, **options)  # type: ignore[no-untyped-call]
        except ResponseError as error:
            if str(error).startswith(PASSING):
                raise WriteRefusedError(str(error)) from error
            raise


def connect(url: str) -> RawRedis:
    """A client whose connections are made lazily, so that it may be made before a fork."""
    pool = BlockingConnectionPool.from_url(
        url,
        max_connections=MOST_CONNECTIONS,
        timeout=ANSWER_SECONDS,
        socket_connect_timeout=2.0,
        socket_timeout=ANSWER_SECONDS,
        health_check_interval=30,
        retry=Retry(NoBackoff(), 1),
    )
    return StoreRedis.from_pool(pool)
