"""The connection to Redis, as the store uses it: raw bytes, quick to say that Redis is away."""

import ssl
from pathlib import Path
from typing import Any

from redis import BlockingConnectionPool, Connection, Redis, SSLConnection, UnixDomainSocketConnection
from redis.backoff import NoBackoff
from redis.retry import Retry

from domain.redis_url import FILES, RedisUrl

# More threads than this wait for each other: 256 requests that hear of one end at once would otherwise open as many
# connections, and redis-py refuses more than 100. Commands take less than a millisecond.
MOST_CONNECTIONS = 64
ANSWER_SECONDS = 10.0

# redis-py annotates every reply as the union of what decoding and non-decoding clients give,
# which no caller can use; the store's own signatures are typed where they leave this client.
RawRedis = Any


def connect(url: RedisUrl) -> RawRedis:
    """A client whose connections are made lazily, so that it may be made before a fork.

    Raises:
        ValueError: a file that TLS needs is not there, or is not what it should be.
    """
    kind: type[Connection | SSLConnection | UnixDomainSocketConnection] = Connection
    if url.path:
        kind = UnixDomainSocketConnection
    elif url.tls is not None:
        _check_files(url.tls)
        kind = SSLConnection
    pool = BlockingConnectionPool(  # type: ignore[no-untyped-call]
        connection_class=kind,
        **url.client_options(),
        max_connections=MOST_CONNECTIONS,
        timeout=ANSWER_SECONDS,
        socket_connect_timeout=2.0,
        socket_timeout=ANSWER_SECONDS,
        health_check_interval=30,
        retry=Retry(NoBackoff(), 1),
    )
    return Redis.from_pool(pool)


def _check_files(tls: dict[str, Any]) -> None:
    """Reads the certificates as a connection will, which would take a missing one for a Redis that is away."""
    authority, authorities = tls.get("ssl_ca_certs"), tls.get("ssl_ca_path")
    certificate, key = tls.get("ssl_certfile"), tls.get("ssl_keyfile")
    try:
        context = ssl.create_default_context()
        if authority:
            context.load_verify_locations(authority)
        if authorities:
            next(Path(authorities).iterdir(), None)  # ssl would look only when it needs one
        if certificate or key:
            context.load_cert_chain(certificate or "", key, tls.get("ssl_password"))
    except (OSError, ValueError) as error:  # ssl's own errors are OSErrors
        files = ", ".join(tls[name] for name in FILES if name in tls)
        raise ValueError(f"the certificates of CELERITY_REDIS_URL ({files}) cannot be used: {error}") from error
