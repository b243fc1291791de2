"""Reading what a request brings: a JSON body, a query string without repeats."""

from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn

from flask import Flask, Request, Response, g, request
from marshmallow import Schema, ValidationError
from webargs.flaskparser import FlaskParser
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import RequestEntityTooLarge, UnsupportedMediaType

from app.errors import BusyError, too_large
from app.server.body import SMALL_BODY
from app.server.environ import BODY, RESERVATION, announced, drop_body
from app.state import state
from schemas.base import UNKNOWN_FIELD
from schemas.json_body import read_json
from schemas.pages import EmptySchema


def register(app: Flask) -> None:
    app.before_request(admit_body)


def admit_body() -> Response | None:
    """Once it is known who calls: 100 Continue for a large body that is still to be read, or the refusal of it.

    Raises what the server found wrong with a body that it began to read.
    """
    body, reservation = request.environ.get(BODY), request.environ.get(RESERVATION)
    if isinstance(body, Exception):
        raise body
    if reservation is None or body is not None:
        return None
    if request.routing_exception is not None:
        raise request.routing_exception
    reservation.most, reservation.owner = body_limit(), _sender()
    if announced(request.environ) > reservation.most:
        raise too_large(reservation.most)
    if not reservation.grow(announced(request.environ)):
        raise BusyError
    return Response(status=100)


def body_limit() -> int:
    """The most bytes that the body of this request may have: the server's limit, or less for who calls."""
    limits = [state().settings.max_body_bytes]
    if "body_limit" in g:
        limits.append(g.body_limit)
    elif "owner" in g:
        limits.append(state().store.api_keys.max_body_bytes(g.owner))
    else:
        # An open path: those who have shown nothing send nothing large.
        limits.append(SMALL_BODY)
    return min(filter(None, limits))


def hold(size: int) -> None:
    """Takes room for so many bytes more, until the request is answered. Raises BusyError when there is none."""
    reservation = request.environ.get(RESERVATION)
    if reservation is None:
        return
    reservation.owner = _sender()
    if not reservation.grow(reservation.size + size):
        raise BusyError


def _sender() -> str:
    """The owner whose body it is: who calls, or who asked for the link of an upload. Nobody on an open path."""
    sender: str = g.get("owner") or g.get("uploader", "")
    return sender


def read_body() -> bytes:
    """The raw body of the request. Raises RequestEntityTooLarge over the limit."""
    body: bytes | None = request.environ.get(BODY)
    if body is None:
        body = _read_elsewhere()
    least = min(SMALL_BODY, state().settings.max_body_bytes)
    if len(body) > least and len(body) > (limit := _admitted_limit()):
        raise too_large(limit)
    return body


def _admitted_limit() -> int:
    """The limit that a large body was admitted with, or else that of now."""
    reservation = request.environ.get(RESERVATION)
    return (reservation and reservation.most) or body_limit()


def _read_elsewhere() -> bytes:
    """The body where the server is not ours, as that of a test.

    Werkzeug silently cuts a chunked one at MAX_CONTENT_LENGTH, which therefore is the limit and one byte more.
    """
    try:
        return request.get_data()
    except RequestEntityTooLarge as error:
        raise too_large(state().settings.max_body_bytes) from error


class Parser(FlaskParser):
    """Strict: every field and every query parameter is known to its schema, or refused."""

    DEFAULT_VALIDATION_STATUS = 400
    DEFAULT_UNKNOWN_BY_LOCATION: dict[str, str | None] = {}  # noqa: RUF012 - the schema's own word counts

    def load_json(self, req: Request, schema: Schema) -> Any:
        """The parsed body; none is needed where the schema is an empty one."""
        body = read_body()
        if not body and isinstance(schema, EmptySchema):
            return {}
        if not body:
            raise ValidationError("the request needs a JSON object as its body")
        if not req.is_json:
            raise UnsupportedMediaType
        # Nobody reads it after this: its memory is free for what is made of it.
        drop_body(request.environ)
        return self.read_json(body, schema, "the body")

    def read_json(self, text: bytes, schema: Schema, what: str) -> Any:
        """Raises ValidationError, whose sentences begin with `what` where they are of the whole."""
        try:
            return read_json(text, schema, state().settings.max_samples_per_call)
        except ValidationError as error:
            if isinstance(error.messages, list):
                raise ValidationError([f"{what} {sentence}" for sentence in error.messages]) from error
            raise

    def load_querystring(self, req: Request, _: Schema) -> Any:
        return self.query_once(req.args)

    def query_once(self, query: MultiDict[str, str]) -> dict[str, str]:
        """Raises ValidationError for parameters that are repeated."""
        repeated = {name: ["is given more than once"] for name, values in query.lists() if len(values) > 1}
        if repeated:
            raise ValidationError(repeated)
        return query.to_dict()

    def handle_error(self, error: ValidationError, *_: Any, **__: Any) -> NoReturn:
        """Passes on what the schema said, without the location that webargs wraps it in."""
        (messages,) = error.messages_dict.values()
        raise ValidationError(messages)


def without_query(view: Callable[..., Any]) -> Callable[..., Any]:
    """Refuses query parameters, which this path does not take, as a body's unknown fields are refused."""

    @wraps(view)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if request.args:
            raise ValidationError({name: [UNKNOWN_FIELD] for name in request.args})
        return view(*args, **kwargs)

    return wrapper
