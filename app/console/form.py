"""Forms that only our own pages can send: a signed token tied to the visit. app/origin.py refuses other sites'."""

from flask import g, request
from itsdangerous import BadData
from werkzeug.exceptions import BadRequest

from app.console.visit import SECONDS
from app.signing import sign, unsign

FIELD = "form_token"
SALT = "console form"


def form_token() -> str:
    return sign(_visit_id(), SALT)


def check_form() -> None:
    """Raises BadRequest for a form that is too old or another visit's."""
    try:
        visit_id = unsign(request.form.get(FIELD, ""), SALT, SECONDS)
    except BadData:
        visit_id = None
    if visit_id != _visit_id():
        raise BadRequest("This form is too old. Go back, load the page again, and send it once more.")


def _visit_id() -> str:
    return g.visit.id if g.visit else ""
