"""API keys: a Bearer token on everything but health and documentation, when keys are set."""

import hashlib
import hmac

from flask import Flask, request
from werkzeug.datastructures import WWWAuthenticate
from werkzeug.exceptions import Unauthorized

from app.links import LINKS
from app.state import state

OPEN_PATHS = ("/healthz", "/readyz", "/openapi.json", "/docs")
ANONYMOUS = "anonymous"


def register(app: Flask) -> None:
    app.before_request(check)


def check() -> None:
    """Raises Unauthorized, for paths that do not exist too, so that nothing is learned without a key."""
    keys = state().settings.api_keys
    if keys and not _is_open(request.path) and not _is_known(_token(), keys):
        raise Unauthorized(
            "an API key is needed: Authorization: Bearer <key>", www_authenticate=WWWAuthenticate("bearer")
        )


def caller() -> str:
    """Who calls, for the scope of an Idempotency-Key: a digest of the API key, never the key."""
    if not state().settings.api_keys:
        return ANONYMOUS
    return hashlib.sha256(_token()).hexdigest()


def _token() -> bytes:
    authorization = request.authorization
    if authorization is None or authorization.type != "bearer":
        return b""
    return (authorization.token or "").encode()


def _is_open(path: str) -> bool:
    return path in OPEN_PATHS or path.startswith(("/static/", LINKS))


def _is_known(token: bytes, keys: tuple[str, ...]) -> bool:
    """Compares with every key, so that the time taken tells nothing."""
    return sum(hmac.compare_digest(token, key.encode()) for key in keys) > 0
