"""Authentication and ownership: a Bearer token on everything but health and documentation, once there are keys."""

from flask import Flask, g, request
from werkzeug.datastructures import WWWAuthenticate
from werkzeug.exceptions import Unauthorized

from app.host import check_host
from app.links import LINKS
from app.state import state
from domain.api_key import ANONYMOUS
from domain.session import Dialect, Session
from store.errors import NotFoundError

OPEN_PATHS = ("/", "/healthz", "/readyz", "/openapi.json", "/docs", "/together/openapi.json")
METRICS = "/metrics"
NEEDED = "an API key is needed: Authorization: Bearer <key>"
OWNER = "celerity.owner"
"""The key of a request's environ under which its owner is, once asked for."""


def register(app: Flask) -> None:
    app.before_request(check)


def check() -> None:
    """Raises Unauthorized, for paths that do not exist too, so that nothing is learned without a key; and Forbidden
    where none is needed, for a request to another host."""
    if _is_open(request.path):
        return
    # A request with a large body comes twice, and counts once.
    g.owner = request.environ.get(OWNER) or state().store.api_keys.admit(_token(), state().settings.api_keys)
    request.environ[OWNER] = g.owner
    if g.owner is None:
        raise _key_needed()
    if g.owner == ANONYMOUS:
        check_host()


def check_again() -> None:
    """Raises Unauthorized when the key has been revoked since this request came, or the first one has been made."""
    if not state().store.api_keys.is_good(caller(), state().settings.api_keys):
        raise _key_needed()


def caller() -> str:
    """The owner of what this request makes, who sees nothing of other owners: the API key's id, never the key."""
    owner: str = g.owner
    return owner


def own_session(session_id: str, dialect: Dialect | None = None) -> Session:
    """A session of the caller's, and of that dialect if one is given (see docs/decisions/0013). Raises NotFoundError
    for any other, as for one that does not exist."""
    session = state().store.sessions.get(session_id, caller())
    if dialect not in (None, session.spec.dialect):
        raise NotFoundError("no such training session")
    return session


def _key_needed() -> Unauthorized:
    return Unauthorized(NEEDED, www_authenticate=WWWAuthenticate("bearer"))


def _token() -> str:
    """What follows Bearer, as it stands. Werkzeug's own reading takes a token with = inside for parameters."""
    kind, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""


def _is_open(path: str) -> bool:
    if path == METRICS:
        return state().settings.open_metrics
    # The console asks for itself; see app/console/login_cookie.py.
    return path in OPEN_PATHS or path.startswith(("/static/", "/console/", LINKS))
