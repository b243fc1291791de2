"""By which names a server without keys is served: those of this host, and that of CELERITY_PUBLIC_URL.

A page may give its own name the address of this host (DNS rebinding). To the browser the server is then the page's own,
and only the name in the request tells it from one that is meant for it.
"""

from ipaddress import ip_address
from urllib.parse import urlsplit

from flask import request
from werkzeug.exceptions import Forbidden

from app.state import state

REFUSED = (
    "a server without API keys is served under the names of its own host: ask localhost or 127.0.0.1, set "
    "CELERITY_PUBLIC_URL to the address that leads here, or make an API key"
)


def check_host() -> None:
    """Raises Forbidden for a request to another name."""
    name = _name_in(f"//{request.host}")
    if not (name == "localhost" or _is_loopback(name) or (name and name == _name_in(state().settings.public_url))):
        raise Forbidden(REFUSED)


def _name_in(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _is_loopback(name: str) -> bool:
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False
