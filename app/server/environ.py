"""What WSGI (PEP 3333) says of a request, made from what ASGI says, and the keys that this server adds."""

import sys
import time
from io import BytesIO
from typing import Any
from urllib.parse import unquote_to_bytes

from app.server.body_budget import Reservation

BODY = "celerity.body"
"""The whole body, as bytes; or the exception with which the request ends, where it could not be read."""
RESERVATION = "celerity.reservation"
"""What the request has reserved of the body budget. While there is no BODY beside it, a large one is still to be read:
the application admits it, with a 100 Continue, or answers."""
ARRIVED_AT = "celerity.arrived_at"
"""time.perf_counter() when the head of the request was there."""
UNPREFIXED = {"CONTENT_TYPE", "CONTENT_LENGTH"}

Environ = dict[str, Any]


def environ_of(scope: Any, reservation: Reservation) -> Environ:
    """The environment of a request whose body is not there yet.

    Nothing that a peer sends can name a key outside HTTP_; SCRIPT_NAME is always empty.
    """
    host, port = scope["server"] or ("", None)
    environ: Environ = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(scope["raw_path"]).decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_NAME": host,
        "SERVER_PORT": str(port or 0),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "REMOTE_ADDR": scope["client"][0] if scope["client"] else "",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope["scheme"],
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
        "wsgi.input": BytesIO(),
        "wsgi.input_terminated": True,
        RESERVATION: reservation,
        ARRIVED_AT: time.perf_counter(),
    }
    for name, value in scope["headers"]:
        _add(environ, name, value.decode("latin-1"))
    return environ


def announced(environ: Environ) -> int:
    """The length of the body that the head gives; 0 also where it gives none."""
    return int(environ.get("CONTENT_LENGTH") or 0)


def give_body(environ: Environ, body: bytes | Exception) -> None:
    """The request is whole now, however its body came."""
    environ.pop("HTTP_TRANSFER_ENCODING", None)
    environ[BODY] = body
    if isinstance(body, bytes):
        environ["CONTENT_LENGTH"] = str(len(body))
        environ["wsgi.input"] = BytesIO(body)


def drop_body(environ: Environ) -> None:
    """Once nobody reads it any more."""
    if BODY in environ:
        environ[BODY] = b""
        environ["wsgi.input"] = BytesIO()


def _add(environ: Environ, name: bytes, value: str) -> None:
    if b"_" in name:
        # It would be taken for another header, whose name has a hyphen there.
        return
    key = name.decode("latin-1").upper().replace("-", "_")
    key = key if key in UNPREFIXED else f"HTTP_{key}"
    glue = "; " if key == "HTTP_COOKIE" else ","
    environ[key] = f"{environ[key]}{glue}{value}" if key in environ else value
