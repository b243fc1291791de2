"""Links to files of this host that need no key: signed, and good for a while. Objects elsewhere have presigned URLs."""

from flask import Flask, Response, request, send_file
from itsdangerous import BadData, URLSafeTimedSerializer
from werkzeug.exceptions import Forbidden, NotFound

from app.state import state

LINKS = "/files/"
SALT = "checkpoint files"


def register(app: Flask) -> None:
    app.add_url_rule(f"{LINKS}<token>/<name>", view_func=get_file)


def link(path: str, name: str) -> str:
    """A URL from which anyone may read the object at `path` for as long as the settings say."""
    settings, checkpoints = state().settings, state().store.checkpoints
    if checkpoints.file(path) is None:
        return checkpoints.presigned(path, settings.link_seconds)
    origin = settings.public_url.rstrip("/") or request.host_url.rstrip("/")
    return f"{origin}{LINKS}{_serializer().dumps([path, name])}/{name}"


def get_file(token: str, name: str) -> Response:
    """The file, whole or in ranges. A link that was changed, or is too old, is a 403."""
    try:
        path, signed_name = _serializer().loads(token, max_age=state().settings.link_seconds)
    except BadData as error:
        raise Forbidden from error
    if name != signed_name:
        raise Forbidden
    file = state().store.checkpoints.file(path)
    if file is None or not file.is_file():
        raise NotFound
    return send_file(
        file.absolute(), mimetype="application/octet-stream", as_attachment=True, download_name=name, conditional=True
    )


def _serializer() -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(state().store.checkpoints.secret(), salt=SALT)
