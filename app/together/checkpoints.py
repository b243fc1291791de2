"""Checkpoints, which both APIs share: listed, read, downloaded."""

from typing import Any

from app.auth import caller
from app.links import downloads
from app.state import state
from app.together.blueprint import PREFIX, Blueprint
from domain.checkpoint import Checkpoint
from schemas.checkpoints import CheckpointDownloadSchema, DownloadSchema
from schemas.together.checkpoints import CheckpointListSchema, CheckpointSchema, ListCheckpointsSchema, checkpoint_view
from schemas.together.pages import page

checkpoints = Blueprint(
    "together_checkpoints", __name__, url_prefix=f"{PREFIX}/checkpoints", description="What is kept of a session."
)


@checkpoints.route("")
@checkpoints.arguments(ListCheckpointsSchema, location="query")
@checkpoints.response(200, CheckpointListSchema)
def list_checkpoints(query: dict[str, Any]) -> Any:
    """List checkpoints, newest first"""
    base_model = query.get("base_model")

    def keep(checkpoint: Checkpoint) -> bool:
        return base_model in (None, checkpoint.spec.base_model.name)

    newest = state().store.checkpoints.newest(caller(), query.get("session_id", ""), query.get("type"))
    return page(newest, query, keep, checkpoint_view)


@checkpoints.route("/<id:checkpoint_id>")
@checkpoints.response(200, CheckpointSchema)
def get_checkpoint(checkpoint_id: str) -> dict[str, Any]:
    """Read a checkpoint"""
    return checkpoint_view(state().store.checkpoints.get(checkpoint_id, caller()))


@checkpoints.route("/<id:checkpoint_id>/download")
@checkpoints.arguments(DownloadSchema, location="query")
@checkpoints.response(200, CheckpointDownloadSchema)
def download_checkpoint(query: dict[str, Any], checkpoint_id: str) -> dict[str, Any]:
    """Read where an inference checkpoint's files can be had"""
    return downloads(state().store.checkpoints.get(checkpoint_id, caller()), query["variant"])
