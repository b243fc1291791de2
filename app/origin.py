"""Whatever changes something is refused from a page of another site, which a browser sends for whoever looks at it.

Browsers say where a request comes from, and let no page say it in their place; programs say nothing. So nobody needs a
header for this; see docs/decisions/0041.
"""

from urllib.parse import urlsplit

from flask import Flask, request
from werkzeug.exceptions import Forbidden

from app.state import state

SAFE = ("GET", "HEAD", "OPTIONS")
OWN = ("same-origin", "none")
REFUSED = "this was sent by another site: only pages of this server, and programs, may change something here"


def register(app: Flask) -> None:
    app.before_request(check_origin)


def check_origin() -> None:
    """Raises Forbidden for what another site's page sent."""
    # A page must ask before it adds this header to a request for another site, and is refused.
    if request.method in SAFE or "Authorization" in request.headers:
        return
    if not _is_own():
        raise Forbidden(REFUSED)


def _is_own() -> bool:
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    if site is not None:
        return site in OWN
    # A browser of before 2023, or one that does not trust this address enough to say more.
    public = urlsplit(state().settings.public_url).netloc
    return origin is None or origin.partition("://")[2] in (request.host, public or request.host)
