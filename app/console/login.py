"""Login: exchanges an API key for a session cookie."""

from http import HTTPStatus

from flask import g, redirect, render_template, request, url_for
from werkzeug.wrappers import Response

from app.console import login_cookie
from app.console.blueprint import PREFIX, console
from app.state import state

UNKNOWN = "This API key is not known here, or has been revoked."


@console.get(f"{PREFIX}/login")
def login() -> str | Response:
    if login_cookie.admitted(g.login) is not None:
        return redirect(url_for("console.overview"))
    return render_template("console/login.html")


@console.post(f"{PREFIX}/login")
def log_in() -> tuple[str, int] | Response:
    owner = state().store.api_keys.admit(request.form.get("key", "").strip(), state().settings.api_keys)
    if owner is None:
        return render_template("console/login.html", problem=UNKNOWN), HTTPStatus.UNAUTHORIZED
    response = redirect(url_for("console.overview"))
    login_cookie.log_in(response, owner)
    return response


@console.post(f"{PREFIX}/logout")
def log_out() -> Response:
    response = redirect(url_for("console.login"))
    login_cookie.log_out(response)
    return response
