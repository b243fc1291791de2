"""Checkpoints: listed, read, deleted, downloaded. Operations of a session save them."""

from typing import Any

from app.auth import caller
from app.blueprint import Blueprint
from app.links import downloads
from app.state import state
from schemas.checkpoints import (
    CheckpointDownloadSchema,
    CheckpointListSchema,
    CheckpointSchema,
    DownloadSchema,
    checkpoint_view,
)

checkpoints = Blueprint("checkpoints", __name__, url_prefix="/v1/rl", description="What is kept of a session.")


@checkpoints.route("/checkpoints")
@checkpoints.arguments(CheckpointListSchema, location="query")
@checkpoints.response(200, CheckpointSchema(many=True))
def list_checkpoints(query: dict[str, Any]) -> list[dict[str, Any]]:
    """List checkpoints, newest first"""
    return [checkpoint_view(checkpoint) for checkpoint in state().store.checkpoints.list(caller(), **query)]


@checkpoints.route("/checkpoints/<id:checkpoint_id>")
@checkpoints.response(200, CheckpointSchema)
def get_checkpoint(checkpoint_id: str) -> dict[str, Any]:
    """Read a checkpoint"""
    return checkpoint_view(state().store.checkpoints.get(checkpoint_id, caller()))


@checkpoints.route("/checkpoints/<id:checkpoint_id>", methods=("DELETE",))
@checkpoints.response(204)
def delete_checkpoint(checkpoint_id: str) -> None:
    """Delete a checkpoint and its files

    Sessions that went on from it are not affected.
    """
    state().store.checkpoints.delete(checkpoint_id, caller())


@checkpoints.route("/checkpoints/<id:checkpoint_id>/download")
@checkpoints.arguments(DownloadSchema, location="query")
@checkpoints.response(200, CheckpointDownloadSchema)
def download_checkpoint(query: dict[str, Any], checkpoint_id: str) -> dict[str, Any]:
    """Read where an inference checkpoint's files can be had

    Each URL lets anyone who has it read the file for a while; ask again for new ones.
    """
    return downloads(state().store.checkpoints.get(checkpoint_id, caller()), query["variant"])
