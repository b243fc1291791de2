"""Forms that only our own pages can send: a signed token tied to the visit, from a page of the same origin."""

from urllib.parse import urlsplit

from flask import g, request
from itsdangerous import BadData
from werkzeug.exceptions import BadRequest, Forbidden

from app.console.visit import SECONDS
from app.signing import sign, unsign
from app.state import state

FIELD = "form_token"
SALT = "console form"


def form_token() -> str:
    return sign(_nonce(), SALT)


def check_form() -> None:
    """Raises Forbidden for a form that another site sent, BadRequest for one that is too old or another visit's."""
    origin, public = request.headers.get("Origin"), urlsplit(state().settings.public_url).netloc
    if origin is not None and urlsplit(origin).netloc not in (request.host, public or request.host):
        raise Forbidden("This form was sent by another site.")
    if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        raise Forbidden("This form was sent by another site.")
    try:
        nonce = unsign(request.form.get(FIELD, ""), SALT, SECONDS)
    except BadData:
        nonce = None
    if nonce != _nonce():
        raise BadRequest("This form is too old. Go back, load the page again, and send it once more.")


def _nonce() -> str:
    return g.visit.nonce if g.visit else ""
