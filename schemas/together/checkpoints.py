"""Checkpoints as Together's API shows them."""

from typing import Any

from marshmallow import fields

from domain.checkpoint import Checkpoint, CheckpointKind
from domain.operation import Operation
from schemas.base import AnswerSchema
from schemas.fields import Choice, prefixed
from schemas.operations import identifier, rfc3339, timestamp
from schemas.together.operations import OperationSchema
from schemas.together.pages import CursorSchema, MetaSchema

TYPES = prefixed(CheckpointKind, "CHECKPOINT_TYPE_")


class SavedSchema(AnswerSchema):
    id = identifier("The checkpoint's id.")
    created_at = timestamp("When it was saved.", required=True)
    step = fields.Integer(required=True, metadata={"description": "The session's step then.", "examples": [42]})


class InferenceCheckpointSchema(SavedSchema):
    """There is no model registry here, so no registration."""


class TrainingResultSchema(AnswerSchema):
    checkpoint = fields.Nested(SavedSchema, required=True)


class TrainingCheckpointOperationSchema(OperationSchema):
    output = fields.Nested(TrainingResultSchema, metadata={"description": "The result, once COMPLETED."})


class InferenceResultSchema(AnswerSchema):
    checkpoint = fields.Nested(InferenceCheckpointSchema, required=True)


class InferenceCheckpointOperationSchema(OperationSchema):
    output = fields.Nested(InferenceResultSchema, metadata={"description": "The result, once COMPLETED."})


class CheckpointSchema(SavedSchema):
    base_model = fields.String(required=True, metadata={"description": "The frozen model."})
    lora_rank = fields.Integer(required=True, metadata={"description": "The adapter's rank.", "examples": [8]})
    session_id = identifier("The session it was saved from, which may be gone, or the other API's.")
    type = Choice(TYPES, required=True, description="Whether training goes on from it, or other software loads it.")


class ListCheckpointsSchema(CursorSchema):
    base_model = fields.String(metadata={"description": "Only those of this base model."})
    session_id = fields.String(metadata={"description": "Only those of this session."})
    type = Choice(TYPES, description="Only those of this type.")


class CheckpointListSchema(AnswerSchema):
    data = fields.List(fields.Nested(CheckpointSchema), required=True)
    meta = fields.Nested(MetaSchema, required=True)


def saved_view(checkpoint: Checkpoint) -> dict[str, Any]:
    return {"id": checkpoint.id, "created_at": rfc3339(checkpoint.created_at), "step": checkpoint.step}


def result_view(operation: Operation, made: Checkpoint) -> dict[str, Any]:
    """It is there from the moment on at which its operation ended."""
    assert operation.ended_at is not None
    return {"checkpoint": {**saved_view(made), "created_at": rfc3339(operation.ended_at)}}


def checkpoint_view(checkpoint: Checkpoint) -> dict[str, Any]:
    return {
        **saved_view(checkpoint),
        "base_model": checkpoint.spec.base_model.name,
        "lora_rank": checkpoint.spec.lora.rank,
        "session_id": checkpoint.session_id,
        "type": checkpoint.kind,
    }
