"""Idempotency-Key on a POST: one effect, and the first answer for every repeat.

A key counts for one caller and one path. Only answers that took effect are kept: what was refused may be
sent again under its key, and what was refused for its body may be mended under the same key.
"""

import hashlib
import re
from collections.abc import Callable
from functools import wraps
from typing import Any

import orjson
from flask import Response, g, make_response, request

from app.answers import json_response
from app.auth import caller
from app.bodies import read_body
from app.state import state
from schemas.problems import refusal
from store.idempotency import IdempotencyKey

HEADER = "Idempotency-Key"
KEY = re.compile(r"[!-~]{1,255}")


def idempotent(view: Callable[..., Any]) -> Callable[..., Response]:
    """Answers a repeat with the bytes of the first answer; the view finds the key in `current_idempotency_key`."""

    @wraps(view)
    def wrapper(*args: Any, **kwargs: Any) -> Response:
        g.idempotency_key = _read_key()
        if g.idempotency_key is None:
            return make_response(view(*args, **kwargs))
        first = state().store.idempotency.recall(g.idempotency_key)
        return json_response(first) if first is not None else _remember(make_response(view(*args, **kwargs)))

    return wrapper


def current_idempotency_key() -> IdempotencyKey | None:
    """The Idempotency-Key of this POST, if it has one."""
    key: IdempotencyKey | None = g.idempotency_key
    return key


def _read_key() -> IdempotencyKey | None:
    key = request.headers.get(HEADER)
    if key is None:
        return None
    if not KEY.fullmatch(key):
        raise refusal(HEADER, "must have 1 to 255 printable ASCII characters, none of them a space")
    digest = hashlib.sha256(read_body()).digest()
    return IdempotencyKey(scope=f"{caller()} {request.path}", key=key, digest=digest)


def _remember(response: Response) -> Response:
    """The first answer under the key, which may be another one than this."""
    body = response.get_data()
    session_id = (request.view_args or {}).get("session_id") or orjson.loads(body).get("session_id")
    return json_response(state().store.idempotency.remember(g.idempotency_key, session_id, body))
