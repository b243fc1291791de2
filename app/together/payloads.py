"""Where large bodies are put ahead of their request, and where large results are fetched."""

from typing import Any

from app.auth import own_session
from app.links import link, upload_link
from app.state import state
from app.together.blueprint import SESSIONS, Blueprint
from domain.session import Dialect
from schemas.pages import EmptySchema
from schemas.together.payloads import DownloadSchema, UploadSchema

payloads = Blueprint(
    "together_payloads", __name__, url_prefix=f"{SESSIONS}/<id:session_id>/payloads", description="Large payloads."
)


@payloads.route("/upload-url", methods=("POST",))
@payloads.arguments(EmptySchema, required=False)
@payloads.response(200, UploadSchema)
def create_upload_url(_: dict[str, Any], session_id: str) -> dict[str, str]:
    """Learn where a large body may be PUT

    It is kept for a day. An operation of this session then names it as its payload_id.
    """
    payload_id, path = state().store.uploads.begin(own_session(session_id, Dialect.TOGETHER).id)
    return {"payload_id": payload_id, "upload_url": upload_link(path)}


@payloads.route("/<id:payload_id>/download-url", methods=("POST",))
@payloads.arguments(EmptySchema, required=False)
@payloads.response(200, DownloadSchema)
def create_download_url(_: dict[str, Any], session_id: str, payload_id: str) -> dict[str, str]:
    """Learn where the rest of a large result can be had"""
    path = state().store.uploads.path(own_session(session_id, Dialect.TOGETHER).id, payload_id)
    return {"download_url": link(path, "result.json")}
