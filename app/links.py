"""Signed URLs of files of this host, which need no key and expire. Objects elsewhere have presigned URLs."""

from typing import Any

from flask import Flask, Response, g, request, send_file
from itsdangerous import BadData
from werkzeug.exceptions import BadRequest, Forbidden, NotFound

from app.bodies import body_limit, read_body
from app.signing import sign, unsign
from app.state import state
from domain.checkpoint import Checkpoint, Part
from schemas.checkpoints import files_of
from store.errors import ObjectsAwayError

LINKS = "/files/"
SALT = "checkpoint files"
UPLOAD_SALT = "uploads of an owner"
BYTES = "application/octet-stream"
NO_HOST = "the Host header is not the name of a host, which the links of the answer would lead to"
NOT_OURS = "this link is not one of this server's, or is too old; ask for the download again"


def register(app: Flask) -> None:
    app.add_url_rule(f"{LINKS}<token>/<name>", view_func=get_file)
    app.add_url_rule(f"{LINKS}<token>", view_func=put_file, methods=("PUT",))
    app.before_request(admit_upload)


def link(path: str, name: str) -> str:
    """A URL from which anyone may read the object at `path` for as long as the settings say."""
    settings, checkpoints = state().settings, state().store.checkpoints
    if checkpoints.file(path) is None:
        return checkpoints.presigned(path, settings.link_seconds)
    return f"{_origin()}{LINKS}{sign([path, name], SALT)}/{name}"


def downloads(checkpoint: Checkpoint, part: Part) -> dict[str, Any]:
    """Where the files of a checkpoint's variant can be had. Raises ValidationError when it has none."""
    files = files_of(checkpoint, part)
    return {
        "data": [
            {"filename": file.name, "url": link(checkpoint.path(part, file), file.name), "size": file.size}
            for file in files
        ]
    }


def get_file(token: str, name: str) -> Response:
    """The file, whole or in ranges. A link that was changed, or is too old, is a 403."""
    try:
        path, signed_name = unsign(token, SALT, state().settings.link_seconds)
    except BadData as error:
        raise Forbidden(NOT_OURS) from error
    if name != signed_name:
        raise Forbidden(NOT_OURS)
    file = state().store.checkpoints.file(path)
    try:
        if file is None or not file.is_file():
            raise NotFound
        return send_file(file.absolute(), mimetype=BYTES, as_attachment=True, download_name=name, conditional=True)
    except FileNotFoundError as error:
        raise NotFound from error
    except OSError as error:
        raise ObjectsAwayError(str(error)) from error


def upload_link(path: str) -> str:
    """A URL to which anyone may PUT the object at `path` for as long as the settings say."""
    return f"{_origin()}{LINKS}{sign([path, body_limit(), g.owner], UPLOAD_SALT)}"


def admit_upload() -> None:
    """Before the body is read: it may be as large as any of whoever asked for the link."""
    if request.endpoint != put_file.__name__ or request.view_args is None:
        return
    try:
        signed = unsign(request.view_args["token"], UPLOAD_SALT, state().settings.link_seconds)
    except BadData as error:
        raise Forbidden(NOT_OURS) from error
    g.upload_path, g.body_limit, g.uploader = signed


def put_file(token: str) -> Response:  # noqa: ARG001 - it has been read by admit_upload
    state().store.uploads.take(g.upload_path, read_body())
    return Response(status=200)


def _origin() -> str:
    """Raises BadRequest for a request that names no host."""
    if public := state().settings.public_url:
        return public.rstrip("/")
    if not request.host:
        raise BadRequest(NO_HOST)
    return request.host_url.rstrip("/")
