"""A visit: the cookie that stands for an API key, signed by the store's secret, so that any process knows it."""

import secrets

import msgspec
from flask import request
from itsdangerous import BadData
from werkzeug.wrappers import Response

from app.signing import sign, unsign
from app.state import state

COOKIE = "celerity_console"
SECONDS = 12 * 3600
SALT = "console visit"


class Visit(msgspec.Struct, frozen=True):
    """The id of the key, never the key; `nonce` ties the visit's forms to it."""

    owner: str
    nonce: str


def begin_visit(response: Response, owner: str) -> None:
    value = sign([owner, secrets.token_urlsafe(16)], SALT)
    is_https = request.is_secure or state().settings.public_url.startswith("https:")
    response.set_cookie(COOKIE, value, max_age=SECONDS, httponly=True, samesite="Lax", secure=is_https)


def end_visit(response: Response) -> None:
    response.delete_cookie(COOKIE)


def read_visit() -> Visit | None:
    """None without a cookie, and for one that was changed or is too old."""
    value = request.cookies.get(COOKIE)
    if value is None:
        return None
    try:
        owner, nonce = unsign(value, SALT, SECONDS)
    except BadData:
        return None
    return Visit(owner, nonce)


def admitted(visit: Visit | None) -> str | None:
    """The owner whose things the visitor sees: asked anew with each page, so that a revoked key sees none. None
    when a key is needed. Raises LimitReachedError."""
    api_keys, static = state().store.api_keys, state().settings.api_keys
    return api_keys.admit("", static) if visit is None else api_keys.admit_owner(visit.owner, static)
