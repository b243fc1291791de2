"""Celery's settings for the broker, the same for whoever sends and whoever receives."""

from typing import Any

from domain.redis_url import RedisUrl
from store import keys


def broker_settings(url: RedisUrl, **transport_options: Any) -> dict[str, Any]:
    """The broker is the store's own server, under keys of its own."""
    return {
        "broker_url": url.broker_url,
        # Told nothing, Celery would not look at a server's certificate.
        "broker_use_ssl": url.tls,
        "broker_transport_options": {
            "global_keyprefix": keys.BROKER,
            "socket_connect_timeout": 2,
            **transport_options,
        },
    }
