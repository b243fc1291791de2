"""What is looked at once, before the API serves: a server that would fail, or be open to all, does not start."""

import logging
from collections.abc import Iterable
from ipaddress import ip_address
from socket import AF_INET, AF_INET6, socket

from settings import Settings
from store.errors import Unavailable
from store.refusals import sentence
from store.store import open_store

log = logging.getLogger(__name__)


def check_store(settings: Settings) -> None:
    """A Redis that is away may come. Raises ValueError for one that will not do."""
    store = open_store(settings)
    try:
        store.check_access()
    except Unavailable as error:
        log.warning("%s (%s): requests get a 503 until it works", sentence(error), error)
    finally:
        store.close()


def check_exposure(settings: Settings, listening: Iterable[socket]) -> None:
    """Raises ValueError when anyone on another host could use an API that needs no key, or when it cannot be told."""
    exposed = next(filter(None, map(_exposed, listening)), None)
    if exposed is None or settings.api_keys:
        return
    store = open_store(settings)
    try:
        is_closed = store.api_keys.is_any_made()
    except Unavailable as error:
        raise ValueError(
            f"{exposed} can be reached from other hosts, and Redis is away ({error}), which would know whether an API "
            "key was made: start it first, or set CELERITY_API_KEYS"
        ) from error
    finally:
        store.close()
    if not is_closed:
        raise ValueError(
            f"{exposed} can be reached from other hosts: set CELERITY_API_KEYS or run `celerity keys create` first"
        )


def _exposed(listening: socket) -> str | None:
    """The address at which other hosts reach the socket."""
    # Any other family, as a Unix socket's, is of this host alone.
    if listening.family not in (AF_INET, AF_INET6):
        return None
    address = str(listening.getsockname()[0]).partition("%")[0]
    return None if ip_address(address).is_loopback else address
