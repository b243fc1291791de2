"""What is looked at once, before the API serves: a server that would fail, or be open to all, does not start."""

import logging
from collections.abc import Iterable
from ipaddress import ip_address
from socket import AF_INET, AF_INET6, socket

from settings import Settings
from store.errors import Unavailable
from store.store import open_store

log = logging.getLogger(__name__)


def check_store(settings: Settings) -> None:
    """A Redis that is away may come. Raises ValueError for one that will not do."""
    store = open_store(settings)
    try:
        store.check_access()
    except Unavailable as error:
        log.warning("Redis is away (%s): requests get a 503 until it is there", error)
    finally:
        store.close()


def check_exposure(settings: Settings, listening: Iterable[socket]) -> None:
    """Raises ValueError when anyone on another host could use an API that needs no key."""
    for each in listening:
        # Any other family, as a Unix socket's, is of this host alone.
        if each.family in (AF_INET, AF_INET6) and not settings.api_keys:
            address = each.getsockname()[0].partition("%")[0]
            if not ip_address(address).is_loopback:
                raise ValueError(f"{address} can be reached from other hosts: set CELERITY_API_KEYS first")
