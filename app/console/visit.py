"""A visit: the cookie that stands for an API key, signed, and good as long as the store knows of the visit."""

import msgspec
from flask import request
from itsdangerous import BadData
from werkzeug.wrappers import Response

from app.host import check_host
from app.signing import sign, unsign
from app.state import state
from domain.api_key import ANONYMOUS

COOKIE = "celerity_console"
SECONDS = 12 * 3600
SALT = "console visit"


class Visit(msgspec.Struct, frozen=True):
    """The id of the key, never the key; `id` ties the visit's forms to it."""

    owner: str
    id: str


def begin_visit(response: Response, owner: str) -> None:
    value = sign([owner, state().store.visits.begin(owner, SECONDS)], SALT)
    is_https = request.is_secure or state().settings.public_url.startswith("https:")
    response.set_cookie(COOKIE, value, max_age=SECONDS, httponly=True, samesite="Lax", secure=is_https)


def end_visit(response: Response, visit: Visit | None) -> None:
    """For every browser that has the cookie."""
    if visit is not None:
        state().store.visits.end(visit.id)
    response.delete_cookie(COOKIE)


def read_visit() -> Visit | None:
    """None without a cookie, for one that was changed or is too old, and for a visit that has ended."""
    value = request.cookies.get(COOKIE)
    if value is None:
        return None
    try:
        visit = Visit(*unsign(value, SALT, SECONDS))
    except BadData:
        return None
    return visit if state().store.visits.is_open(visit.id) else None


def admitted(visit: Visit | None) -> str | None:
    """The owner whose things the visitor sees: asked anew with each page, so that a revoked key sees none. None
    when a key is needed. Raises LimitReachedError, and Forbidden as auth.check does."""
    api_keys, static = state().store.api_keys, state().settings.api_keys
    owner = api_keys.admit("", static) if visit is None else api_keys.admit_owner(visit.owner, static)
    if owner == ANONYMOUS:
        check_host()
    return owner
