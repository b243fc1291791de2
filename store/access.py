"""What the server must let its user do: every command that the store, its scripts and Celery need, tried once."""

import re
import ssl
from collections.abc import Iterable
from typing import Any, NamedTuple

from redis.exceptions import AuthenticationError, ConnectionError, ExecAbortError, NoPermissionError, ResponseError

from domain.redis_url import RedisUrl
from store import keys
from store.connection import ANSWER_SECONDS, RawRedis

# A command a line. Redis looks whether the user may run it before it looks at the type of the key: what would write
# finds a string where it wants something else. The string expires by itself, for the user who may not delete it.
CALLS = """
SET {key} 1 EX 60
GET {key}
EXISTS {key}
HSET {key} field 1
HSETNX {key} field 1
HGET {key} field
HMGET {key} field
HGETALL {key}
HEXISTS {key} field
HINCRBY {key} field 1
HINCRBYFLOAT {key} field 1
HDEL {key} other
SADD {key} member
SCARD {key}
SISMEMBER {key} member
SMEMBERS {key}
SRANDMEMBER {key}
SREM {key} other
ZADD {key} 1 member
ZCARD {key}
ZRANGE {key} 0 -1
ZRANGEBYSCORE {key} 0 1
ZREVRANGE {key} 0 -1
ZRANK {key} member
ZSCORE {key} member
ZREM {key} other
ZREMRANGEBYSCORE {key} 2 3
XADD {key} * field 1
XRANGE {key} - +
XREVRANGE {key} + -
LPUSH {key} 1
LLEN {key}
BRPOP {key} 1
PUBLISH {key} 1
EVALSHA 0000000000000000000000000000000000000000 1 {key}
SCRIPT|LOAD return
SCRIPT|EXISTS 0000000000000000000000000000000000000000
SELECT {database}
TIME
INFO memory
PING
EXPIRE {key} 60
DEL {key}
MULTI
EXEC
"""
SUBSCRIPTIONS = ("subscribe", "psubscribe", "punsubscribe")
KEYS = f"~{keys.PREFIX}*"
PLACE = re.compile(r"access .*\b(key|channel)")


class Refusal(NamedTuple):
    """A command that was tried, and Redis's error."""

    command: str
    error: ResponseError


def check_access(redis: RawRedis, url: RedisUrl) -> None:
    """Raises ValueError for a server that cannot be used at all, one of Unavailable when it is away."""
    try:
        refusals = [*_refused_calls(redis, url), *_refused_subscriptions(redis, url)]
        is_cluster = not refusals and bool(redis.info("cluster").get("cluster_enabled"))
    except AuthenticationError as error:
        raise ValueError(f"Redis refuses the user or the password of CELERITY_REDIS_URL: {error}") from error
    except NoPermissionError as error:
        raise ValueError(f"{_user(url)} may not even connect: {error}; grant it {rule(url)}") from error
    except ConnectionError as error:
        if _is_final(error):
            raise ValueError(f"CELERITY_REDIS_URL leads to a server that cannot be spoken to: {error}") from error
        raise
    unknown = [refusal.command for refusal in refusals if _is_unknown(refusal.error)]
    if unknown:
        raise ValueError(f"the server of CELERITY_REDIS_URL has no {', '.join(unknown)}: it must be Redis 7 or Valkey")
    if is_cluster:
        raise ValueError("CELERITY_REDIS_URL leads to a cluster, and a server by itself is needed")
    if refusals:
        raise ValueError(_sentence(refusals, url))


def rule(url: RedisUrl) -> str:
    """The least that a user of this server needs, in the words of Redis' ACL."""
    commands = sorted({call.split()[0].lower() for call in CALLS.splitlines() if call} | {*SUBSCRIPTIONS})
    return " ".join([KEYS, *_channels(url), "-@all", *(f"+{command}" for command in commands)])


def _refused_calls(redis: RawRedis, url: RedisUrl) -> list[Refusal]:
    calls = [call.format(key=keys.PROBE, database=url.database) for call in CALLS.splitlines() if call]
    with redis.pipeline(transaction=False) as pipeline:
        for call in calls:
            pipeline.execute_command(*call.replace("|", " ").split())
        answers = pipeline.execute(raise_on_error=False)
    # One that was let begin a transaction and not end it is in it still.
    redis.connection_pool.disconnect()
    return _refusals((call.split()[0].lower() for call in calls), answers)


def _refused_subscriptions(redis: RawRedis, url: RedisUrl) -> list[Refusal]:
    answers = []
    with redis.pubsub() as subscription:
        for command in SUBSCRIPTIONS:
            subscription.execute_command(command, _remote_control(url))
            try:
                answers.append(subscription.parse_response(timeout=ANSWER_SECONDS))
            except ResponseError as error:
                answers.append(error)
    return _refusals(SUBSCRIPTIONS, answers)


def _refusals(commands: Iterable[str], answers: list[Any]) -> list[Refusal]:
    return [
        Refusal(command, answer)
        for command, answer in zip(commands, answers, strict=True)
        # What is refused at a transaction's end comes as the end's failure.
        if isinstance(answer, (NoPermissionError, ExecAbortError)) or _is_unknown(answer)
    ]


def _sentence(refusals: list[Refusal], url: RedisUrl) -> str:
    places = [PLACE.search(str(refusal.error)) for refusal in refusals]
    named = {place.group(1) for place in places if place}
    commands = [refusal.command for refusal, place in zip(refusals, places, strict=True) if not place]
    denied = [f"run {', '.join(commands)}"] if commands else []
    grants = [f"+{command}" for command in commands]
    if "key" in named:
        denied.append(f"use every key of {keys.PREFIX}*")
        grants.append(KEYS)
    if "channel" in named:
        denied.append(f"use every channel of {keys.PREFIX}*")
        grants += _channels(url)
    return f"{_user(url)} may not {', nor '.join(denied)}: grant it {' '.join(grants)}"


def _channels(url: RedisUrl) -> list[str]:
    """A channel that is subscribed to by a pattern, as that of Celery's remote control is, must be granted by name."""
    return [f"&{keys.PREFIX}*", f"&{_remote_control(url)}"]


def _remote_control(url: RedisUrl) -> str:
    return f"{keys.BROKER}/{url.database}.celery.pidbox"


def _user(url: RedisUrl) -> str:
    return f"the Redis user {url.username or 'default'!r}"


def _is_unknown(answer: Any) -> bool:
    return isinstance(answer, ResponseError) and "unknown command" in str(answer)


def _is_final(error: ConnectionError) -> bool:
    """Whether the server was there, and the two do not get on: about certificates, or who may open a socket."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError) and not isinstance(cause, ssl.SSLEOFError):
            return True
        if isinstance(cause, PermissionError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False
