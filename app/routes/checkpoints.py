"""Checkpoints: saved by operations of a session, and from then on things of their own."""

from http import HTTPStatus
from typing import Any

from app.auth import caller, own_session
from app.blueprint import Blueprint
from app.links import downloads
from app.operations import FOLLOWED, accept, read
from app.state import state
from domain.checkpoint import Checkpoint, CheckpointRequest
from domain.operation import OperationKind
from domain.session import Dialect
from schemas import examples
from schemas.checkpoints import (
    CheckpointDownloadSchema,
    CheckpointListSchema,
    CheckpointSchema,
    DownloadSchema,
    InferenceCheckpointOperationSchema,
    SaveSchema,
    TrainingCheckpointOperationSchema,
    checkpoint_view,
)

checkpoints = Blueprint("checkpoints", __name__, url_prefix="/v1/rl", description="What is kept of a session.")


@checkpoints.route("/training-sessions/<id:session_id>:training-checkpoint", methods=("POST",))
@checkpoints.arguments(SaveSchema, required=False)
@checkpoints.refuses(HTTPStatus.TOO_MANY_REQUESTS)
@checkpoints.response(200, TrainingCheckpointOperationSchema, example=examples.ACCEPTED)
def create_training_checkpoint(body: dict[str, Any], session_id: str) -> dict[str, Any]:
    """Save adapter, optimizer state and step, for training to go on from

    Gradients that no optim-step has used are not part of it.
    """
    kind, request = OperationKind.TRAINING_CHECKPOINT, CheckpointRequest()
    return accept(own_session(session_id, Dialect.NATIVE), kind, request, body.get("timeout_seconds"))


@checkpoints.route("/training-sessions/<id:session_id>:inference-checkpoint", methods=("POST",))
@checkpoints.arguments(SaveSchema, required=False)
@checkpoints.refuses(HTTPStatus.TOO_MANY_REQUESTS)
@checkpoints.response(200, InferenceCheckpointOperationSchema, example=examples.ACCEPTED)
def create_inference_checkpoint(body: dict[str, Any], session_id: str) -> dict[str, Any]:
    """Save the adapter, alone and merged into its base model, for other software to load"""
    kind, request = OperationKind.INFERENCE_CHECKPOINT, CheckpointRequest()
    return accept(own_session(session_id, Dialect.NATIVE), kind, request, body.get("timeout_seconds"))


@checkpoints.route("/training-sessions/<id:session_id>/operations/training-checkpoint/<id:operation_id>")
@checkpoints.doc(parameters=["Prefer"])
@checkpoints.response(
    200, TrainingCheckpointOperationSchema, headers=FOLLOWED, example=examples.TRAINING_CHECKPOINT_SAVED
)
def get_training_checkpoint(session_id: str, operation_id: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Read a training-checkpoint operation"""
    return read(session_id, operation_id, OperationKind.TRAINING_CHECKPOINT, Checkpoint)


@checkpoints.route("/training-sessions/<id:session_id>/operations/inference-checkpoint/<id:operation_id>")
@checkpoints.doc(parameters=["Prefer"])
@checkpoints.response(
    200, InferenceCheckpointOperationSchema, headers=FOLLOWED, example=examples.INFERENCE_CHECKPOINT_SAVED
)
def get_inference_checkpoint(session_id: str, operation_id: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Read an inference-checkpoint operation"""
    return read(session_id, operation_id, OperationKind.INFERENCE_CHECKPOINT, Checkpoint)


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
