"""Reading what a request brings: a JSON body by orjson, a query string without repeats."""

from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn

import orjson
from flask import Request, request
from marshmallow import Schema, ValidationError
from webargs.flaskparser import FlaskParser
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import BadRequest, ClientDisconnected, RequestEntityTooLarge, UnsupportedMediaType

from app.state import state
from schemas.base import UNKNOWN_FIELD
from schemas.pages import EmptySchema

CHUNK_BYTES = 1024 * 1024


def read_body() -> bytes:
    """The raw body of the request. Raises RequestEntityTooLarge over the server's limit.

    werkzeug silently cuts a chunked body at MAX_CONTENT_LENGTH, which therefore is the limit and one byte more.
    """
    limit = state().settings.max_body_bytes
    try:
        body = request.get_data()
        if len(body) <= limit:
            return body
    except RequestEntityTooLarge:
        pass
    except (OSError, ClientDisconnected) as error:
        # gunicorn's word for a chunk that is none, and for a client that hung up.
        raise BadRequest from error
    _drain(most=2 * limit)
    raise RequestEntityTooLarge


def _drain(most: int) -> None:
    """Takes what is left of a body: a client that is still sending would see a reset, not the answer."""
    stream = request.environ["wsgi.input"]
    while "wsgi.input_terminated" in request.environ and most > 0 and (chunk := stream.read(CHUNK_BYTES)):
        most -= len(chunk)


class Parser(FlaskParser):
    """Strict: every field and every query parameter is known to its schema, or refused."""

    DEFAULT_VALIDATION_STATUS = 400
    DEFAULT_UNKNOWN_BY_LOCATION: dict[str, str | None] = {}  # noqa: RUF012 - the schema's own word counts

    def load_json(self, req: Request, schema: Schema) -> Any:
        """The parsed body; none is needed where the schema is an empty one.

        orjson itself refuses NaN, Infinity, 1e999, lone surrogates and nesting deeper than 1,024.
        """
        body = read_body()
        if not body and isinstance(schema, EmptySchema):
            return {}
        if not body:
            raise ValidationError("the request needs a JSON object as its body")
        if not req.is_json:
            raise UnsupportedMediaType
        try:
            return orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise ValidationError(f"the body is not JSON: {error}") from error

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
