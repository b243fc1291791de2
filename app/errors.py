"""Every error as JSON in one shape: the schemas' refusals, the store's, Flask's own, and the unforeseen."""

import logging
from http import HTTPStatus

from flask import Flask, Response
from marshmallow import ValidationError
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge

from app.answers import json_response, write
from app.request_id import request_id
from schemas.errors import error_body, invalid_body
from store.errors import (
    CheckpointGoneError,
    FullError,
    KeyReusedError,
    LimitReachedError,
    NoRoomError,
    NotCancellableError,
    NotFoundError,
    ObjectsAwayError,
    ResourcesStoppedError,
    SessionNotActiveError,
    StoreError,
    TooManyNamesError,
    TooManyWaitingError,
    Unavailable,
)
from store.refusals import sentence

logger = logging.getLogger(__name__)

RETRY_AFTER_SECONDS = 2
OBJECTS_AWAY = f"{ObjectsAwayError.sentence}; retry"
STATUS_OF: dict[type[StoreError], HTTPStatus] = {
    NotFoundError: HTTPStatus.NOT_FOUND,
    CheckpointGoneError: HTTPStatus.BAD_REQUEST,
    ResourcesStoppedError: HTTPStatus.BAD_REQUEST,
    SessionNotActiveError: HTTPStatus.BAD_REQUEST,
    NotCancellableError: HTTPStatus.BAD_REQUEST,
    TooManyNamesError: HTTPStatus.BAD_REQUEST,
    KeyReusedError: HTTPStatus.UNPROCESSABLE_ENTITY,
    LimitReachedError: HTTPStatus.TOO_MANY_REQUESTS,
    TooManyWaitingError: HTTPStatus.TOO_MANY_REQUESTS,
    NoRoomError: HTTPStatus.TOO_MANY_REQUESTS,
}
SENTENCES = {
    HTTPStatus.NOT_FOUND: "there is nothing at this path",
    HTTPStatus.METHOD_NOT_ALLOWED: "this path does not take this method; see the Allow header",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "the body must be JSON, sent with Content-Type: application/json",
}
DESCRIBED = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
)


class UnavailableError(Exception):
    """The server cannot do this just now: 503, and the caller may retry."""


class BusyError(UnavailableError):
    """There is no room for a large body."""

    def __init__(self) -> None:
        super().__init__("the server holds as many large bodies as it may; retry, or send smaller ones")


def too_large(limit: int) -> RequestEntityTooLarge:
    return RequestEntityTooLarge(f"the body is over the limit of {limit} bytes")


def register(app: Flask) -> None:
    app.register_error_handler(ValidationError, invalid)
    app.register_error_handler(StoreError, refused)
    app.register_error_handler(UnavailableError, unavailable)
    for redis_error in Unavailable:
        app.register_error_handler(redis_error, redis_away)
    app.register_error_handler(ObjectsAwayError, objects_away)
    app.register_error_handler(Exception, unforeseen)


def answer(status: int, message: str) -> Response:
    return json_response(write(error_body(status, message, request_id())), status)


def invalid(error: ValidationError) -> Response:
    return json_response(write(invalid_body(error.messages, request_id())), HTTPStatus.BAD_REQUEST)


def refused(error: StoreError) -> Response:
    response = answer(STATUS_OF[type(error)], str(error))
    if isinstance(error, FullError):
        response.headers["Retry-After"] = str(error.retry_after)
    return response


def unavailable(error: UnavailableError) -> Response:
    response = answer(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
    response.headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
    return response


def redis_away(error: Exception) -> Response:
    logger.warning("%s: %s", sentence(error), error)
    return unavailable(UnavailableError(f"{sentence(error)}; retry"))


def objects_away(error: ObjectsAwayError) -> Response:
    logger.warning("object storage is away: %s", error)
    return unavailable(UnavailableError(f"{error.sentence}; retry"))


def http_error(error: HTTPException) -> Response:
    """Flask's own errors, with the headers that belong to them (Allow, WWW-Authenticate)."""
    status = HTTPStatus(error.code or HTTPStatus.INTERNAL_SERVER_ERROR)
    response = answer(status, _sentence(status, error))
    response.headers.extend((name, value) for name, value in error.get_headers() if name != "Content-Type")
    return response


def _sentence(status: HTTPStatus, error: HTTPException) -> str:
    if status in DESCRIBED:
        return str(error.description)
    return SENTENCES.get(status, status.phrase)


def unforeseen(error: Exception) -> Response:
    """The process boundary: the client learns that it failed, the log learns why."""
    logger.error("unforeseen error", exc_info=error)
    return answer(HTTPStatus.INTERNAL_SERVER_ERROR, "the server failed; its log says why")
