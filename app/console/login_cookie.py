"""The cookie of a login: a random token, behind which the store has the API key's id; see docs/decisions/0045."""

from flask import request
from werkzeug.wrappers import Response

from app.host import check_host
from app.state import state
from domain.api_key import ANONYMOUS

COOKIE = "celerity_console"
SECONDS = 12 * 3600


def log_in(response: Response, owner: str) -> None:
    token = state().store.logins.begin(owner, SECONDS)
    is_https = request.is_secure or state().settings.public_url.startswith("https:")
    response.set_cookie(COOKIE, token, max_age=SECONDS, httponly=True, samesite="Lax", secure=is_https)


def log_out(response: Response) -> None:
    """For every browser that has the cookie."""
    state().store.logins.end(request.cookies.get(COOKIE, ""))
    response.delete_cookie(COOKIE)


def logged_in() -> str | None:
    """Whose API key logged in; None without a cookie, and for a login that has ended."""
    token = request.cookies.get(COOKIE)
    return state().store.logins.owner(token) if token else None


def admitted(login: str | None) -> str | None:
    """The owner whose things the page shows: asked anew with each page, so that a revoked key sees none. None
    when a key is needed. Raises LimitReachedError, and Forbidden as auth.check does."""
    api_keys, static = state().store.api_keys, state().settings.api_keys
    owner = api_keys.admit("", static) if login is None else api_keys.admit_owner(login, static)
    if owner == ANONYMOUS:
        check_host()
    return owner
