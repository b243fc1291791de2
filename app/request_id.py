"""X-Request-ID: the caller's own or a new one, in the answer, in the body of an error and in every line of the log."""

import logging
import re
from uuid import uuid4

from flask import Flask, Response, g, has_request_context, request

from logs import NO_ID

HEADER = "X-Request-ID"
# Nothing that could end a line of the log, or be taken for another part of it.
SANE = re.compile(r"[A-Za-z0-9._:=+/@-]{1,128}")
LOG_FORMAT = "%(asctime)s %(levelname)-7s %(request_id)s %(name)s: %(message)s"


def register(app: Flask) -> None:
    app.after_request(echo)


def request_id() -> str:
    """The id of this request."""
    if "request_id" not in g:
        asked = request.headers.get(HEADER, "")
        g.request_id = asked if SANE.fullmatch(asked) else str(uuid4())
    found: str = g.request_id
    return found


def echo(response: Response) -> Response:
    response.headers[HEADER] = request_id()
    return response


class InLogs(logging.Filter):
    """Gives every record the `request_id` of LOG_FORMAT; a dash where no request is being answered."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id = request_id() if has_request_context() else NO_ID
        return True
