"""What all pages share: who looks, the policy of the browser, and errors as pages."""

import logging
from http import HTTPStatus
from typing import NoReturn

from flask import Blueprint, Response, g, redirect, render_template, request, url_for
from werkzeug.exceptions import HTTPException, NotFound
from werkzeug.wrappers import Response as AnyResponse

from app.console import formats
from app.console.login_cookie import admitted, logged_in
from app.errors import STATUS_OF
from store.errors import ObjectsAwayError, StoreError, Unavailable
from store.refusals import sentence

PREFIX = "/console"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
logger = logging.getLogger(__name__)

OPEN = ("console.static", "console.login", "console.log_in")

console = Blueprint(
    "console", __name__, template_folder="templates", static_folder="static", static_url_path=f"{PREFIX}/static"
)
console.app_template_filter("ago")(formats.ago)
console.app_template_filter("duration")(formats.duration)
console.app_template_filter("size")(formats.size)
console.app_template_filter("figure")(formats.figure)


@console.before_request
def enter() -> AnyResponse | None:
    """Whoever has no good key is sent to the login. Forms of other sites have been refused; see app/origin.py."""
    g.login = logged_in()
    if request.endpoint in OPEN:
        return None
    g.owner = admitted(g.login)
    return redirect(url_for("console.login")) if g.owner is None else None


@console.after_request
def protect(response: Response) -> Response:
    response.headers["Content-Security-Policy"] = POLICY
    # A browser tells the origin of a form only where a page may tell it.
    response.headers["Referrer-Policy"] = "same-origin"
    if request.endpoint != "console.static":
        response.headers["Cache-Control"] = "no-store"
    return response


@console.get(f"{PREFIX}/<path:_>")
def nothing(_: str) -> NoReturn:
    raise NotFound("There is no such page.")


@console.context_processor
def shared() -> dict[str, object]:
    return {"is_logged_in": g.get("login") is not None}


@console.errorhandler(StoreError)
def refused(error: StoreError) -> tuple[str, int]:
    return error_page(STATUS_OF[type(error)], str(error))


@console.errorhandler(HTTPException)
def http_error(error: HTTPException) -> tuple[str, int]:
    return error_page(error.code or HTTPStatus.INTERNAL_SERVER_ERROR, str(error.description))


@console.errorhandler(Exception)
def unforeseen(error: Exception) -> tuple[str, int]:
    """The process boundary, as in app/errors.py."""
    logger.error("unforeseen error", exc_info=error)
    return error_page(HTTPStatus.INTERNAL_SERVER_ERROR, "The server failed; its log says why.")


def redis_away(error: Exception) -> tuple[str, int]:
    return error_page(HTTPStatus.SERVICE_UNAVAILABLE, f"{sentence(error)}. Try again in a moment.")


@console.errorhandler(ObjectsAwayError)
def objects_away(error: ObjectsAwayError) -> tuple[str, int]:
    logger.warning("object storage is away: %s", error)
    return error_page(
        HTTPStatus.SERVICE_UNAVAILABLE, "The object storage cannot be reached just now. Try again in a moment."
    )


for away in Unavailable:
    console.register_error_handler(away, redis_away)


def error_page(status: int, message: str) -> tuple[str, int]:
    return render_template(
        "console/error.html", status=status, phrase=HTTPStatus(status).phrase, message=message
    ), status
