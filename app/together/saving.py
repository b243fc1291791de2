"""Operations that save a checkpoint of a session."""

from typing import Any

from app.auth import own_session
from app.operations import accepted
from app.together.blueprint import SESSIONS, Blueprint, read
from domain.checkpoint import Checkpoint, CheckpointRequest
from domain.operation import OperationKind
from domain.session import Dialect
from schemas.pages import EmptySchema
from schemas.together.checkpoints import (
    InferenceCheckpointOperationSchema,
    TrainingCheckpointOperationSchema,
    result_view,
)
from schemas.together.operations import operation_view

saving = Blueprint(
    "together_saving", __name__, url_prefix=f"{SESSIONS}/<id:session_id>/operations", description="Saving checkpoints."
)


@saving.route("/training-checkpoint", methods=("POST",))
@saving.arguments(EmptySchema, required=False)
@saving.response(200, TrainingCheckpointOperationSchema)
def create_training_checkpoint(_: dict[str, Any], session_id: str) -> Any:
    """Save adapter, optimizer state and step, for training to go on from"""
    return operation_view(
        accepted(own_session(session_id, Dialect.TOGETHER), OperationKind.TRAINING_CHECKPOINT, CheckpointRequest())
    )


@saving.route("/training-checkpoint/<id:operation_id>")
@saving.doc(parameters=["Prefer"])
@saving.response(200, TrainingCheckpointOperationSchema)
def get_training_checkpoint(session_id: str, operation_id: str) -> Any:
    """Read a training-checkpoint operation"""
    return _read(session_id, operation_id, OperationKind.TRAINING_CHECKPOINT)


@saving.route("/inference-checkpoint", methods=("POST",))
@saving.arguments(EmptySchema, required=False)
@saving.response(200, InferenceCheckpointOperationSchema)
def create_inference_checkpoint(_: dict[str, Any], session_id: str) -> Any:
    """Save the adapter, alone and merged into its base model, for other software to load"""
    return operation_view(
        accepted(own_session(session_id, Dialect.TOGETHER), OperationKind.INFERENCE_CHECKPOINT, CheckpointRequest())
    )


@saving.route("/inference-checkpoint/<id:operation_id>")
@saving.doc(parameters=["Prefer"])
@saving.response(200, InferenceCheckpointOperationSchema)
def get_inference_checkpoint(session_id: str, operation_id: str) -> Any:
    """Read an inference-checkpoint operation"""
    return _read(session_id, operation_id, OperationKind.INFERENCE_CHECKPOINT)


def _read(session_id: str, operation_id: str, kind: OperationKind) -> Any:
    operation, made = read(session_id, operation_id, kind, Checkpoint)
    return operation_view(operation, result_view(operation, made) if made else None)
