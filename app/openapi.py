"""The OpenAPI 3.1 document, generated from the schemas that validate, and the parts every operation shares."""

from http import HTTPStatus
from typing import Any

import flask_smorest
from flask import Flask, Response

from app.errors import http_error
from app.paths import IdConverter, id_schema
from app.request_id import HEADER
from schemas.errors import EXAMPLE_ID, ErrorSchema, error_body, invalid_body

DESCRIPTION = (
    "A self-hosted reinforcement learning API. A training session holds one LoRA adapter over a frozen base model; "
    "sample, forward-backward and optim-step are accepted at once as operations, run in the order of their "
    "acceptance, and are read later."
)
BEARER = "An API key. It is needed as soon as the server has one."
RETRY_AFTER = {"Retry-After": {"description": "Seconds to wait before a retry.", "schema": {"type": "integer"}}}
CHALLENGE = {"WWW-Authenticate": {"description": "Bearer.", "schema": {"type": "string"}}}
HEADERS = {
    HTTPStatus.UNAUTHORIZED: CHALLENGE,
    HTTPStatus.TOO_MANY_REQUESTS: RETRY_AFTER,
    HTTPStatus.SERVICE_UNAVAILABLE: RETRY_AFTER,
}
REQUEST_ID = {HEADER: {"description": "The request's id, as in the body.", "schema": {"type": "string"}}}
REFUSALS = {
    HTTPStatus.BAD_REQUEST: "The request is wrong, or the session is not active.",
    HTTPStatus.UNAUTHORIZED: "The API key is missing or unknown.",
    HTTPStatus.FORBIDDEN: "A page of another site sent this, or a server without API keys is asked under another name.",
    HTTPStatus.NOT_FOUND: "No such session, operation or checkpoint, or its result is no longer kept.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "The body is over the server's limit.",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "The body is not sent as JSON.",
    HTTPStatus.UNPROCESSABLE_ENTITY: "The Idempotency-Key came before with another body.",
    HTTPStatus.TOO_MANY_REQUESTS: "A limit of the session, the key or the workers is reached; the message names it.",
    HTTPStatus.INTERNAL_SERVER_ERROR: "The server failed.",
    HTTPStatus.SERVICE_UNAVAILABLE: "The server cannot do this just now; retry.",
}
PARAMETERS = {
    "IdempotencyKey": {
        "name": "Idempotency-Key",
        "description": "The same key with the same body on this path takes effect once and gets the first answer.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
    },
    "Prefer": {
        "description": "wait=N holds the answer until the operation has ended, for at most N seconds.",
        "schema": {"type": "string", "examples": ["wait=10"]},
    },
}


class Api(flask_smorest.Api):
    """flask-smorest with our errors and the components that our routes name."""

    ERROR_SCHEMA = ErrorSchema
    DEFAULT_ERROR_RESPONSE_NAME = None

    def __init__(self, app: Flask, *, needs_key: bool, config_prefix: str = "") -> None:
        """`config_prefix` begins the names of its settings in the app's configuration."""
        security: list[dict[str, list[str]]] = [{"bearer": []}] if needs_key else [{}, {"bearer": []}]
        info = {"description": DESCRIPTION, "license": {"name": "Apache 2.0", "identifier": "Apache-2.0"}}
        options = {"info": info, "servers": [{"url": "/"}], "security": security}
        super().__init__(app, spec_kwargs=options, config_prefix=config_prefix)
        self.register_converter(IdConverter, id_schema)
        self.spec.components.security_scheme("bearer", {"type": "http", "scheme": "bearer", "description": BEARER})
        for name, parameter in PARAMETERS.items():
            self.spec.components.parameter(name, "header", {"name": name, **parameter})

    def handle_http_exception(self, error: Any) -> Response:
        return http_error(error)

    def _register_pagination_header(self) -> None:
        """No answer of ours has flask-smorest's header, nor the schema that it would add."""

    def _register_responses(self) -> None:
        for status, description in REFUSALS.items():
            content = {"schema": ErrorSchema, "example": _example(status, description)}
            response = {"description": description, "content": {"application/json": content}}
            headers = {"headers": {**REQUEST_ID, **HEADERS.get(status, {})}}
            self.spec.components.response(status.name, {**response, **headers}, lazy=True)


def _example(status: HTTPStatus, description: str) -> dict[str, Any]:
    if status is HTTPStatus.BAD_REQUEST:
        return invalid_body({"num_samples": ["must be an integer"]}, EXAMPLE_ID)
    return error_body(status, description, EXAMPLE_ID)
