"""Checkpoints: what an operation that saves one answers, how one is shown and listed, where its files can be had."""

from typing import Any

from marshmallow import fields

from domain.checkpoint import Checkpoint, CheckpointFile, CheckpointKind, Part
from schemas.base import AnswerSchema, QuerySchema
from schemas.fields import Choice, prefixed
from schemas.operations import OperationSchema, identifier, rfc3339, timestamp
from schemas.pages import EmptySchema, PageSchema
from schemas.problems import refusal
from schemas.sessions import LoraConfigAnswerSchema
from schemas.time_limit import timeout_seconds

VARIANT_PREFIX = "CHECKPOINT_VARIANT_"
KIND_PREFIX = "CHECKPOINT_KIND_"
KINDS = prefixed(CheckpointKind, KIND_PREFIX)


def step() -> fields.Integer:
    return fields.Integer(
        required=True, metadata={"description": "The session's step when it was saved.", "examples": [42]}
    )


def model_name() -> fields.String:
    return fields.String(
        required=True,
        metadata={
            "description": "What the checkpoint is called: base model, step and the beginning of its id.",
            "examples": ["SmolLM2-135M-Instruct-rl-step-42-01900a6e"],
        },
    )


class SaveSchema(EmptySchema):
    """What is saved is the session as it is: there is nothing else to ask for."""

    timeout_seconds = timeout_seconds()


class TrainingCheckpointResultSchema(AnswerSchema):
    checkpoint_id = identifier("What checkpoint_id takes when a session is to go on from it.", "id")


class TrainingCheckpointOperationSchema(OperationSchema):
    data = fields.Nested(TrainingCheckpointResultSchema, metadata={"description": "The result, once COMPLETED."})


class InferenceCheckpointResultSchema(AnswerSchema):
    model_name = model_name()
    checkpoint_id = identifier("The checkpoint's id, under which its files can be had.", "id")


class InferenceCheckpointOperationSchema(OperationSchema):
    data = fields.Nested(InferenceCheckpointResultSchema, metadata={"description": "The result, once COMPLETED."})


class RegistrationSchema(AnswerSchema):
    model_name = model_name()
    registered_at = timestamp("When it could be had under this name.", required=True)


class CheckpointSchema(AnswerSchema):
    id = identifier("The checkpoint's id.")
    kind = Choice(KINDS, required=True, description="Whether training goes on from it, or other software loads it.")
    session_id = identifier("The session it was saved from, which may be gone.")
    base_model = fields.String(
        required=True,
        metadata={"description": "The frozen model.", "examples": ["HuggingFaceTB/SmolLM2-135M-Instruct"]},
    )
    lora_config = fields.Nested(LoraConfigAnswerSchema, required=True)
    step = step()
    size = fields.Integer(required=True, metadata={"description": "Bytes of all its files.", "examples": [58624]})
    created_at = timestamp("When it was saved.", required=True)
    registration = fields.Nested(RegistrationSchema, metadata={"description": "Of inference checkpoints."})


class CheckpointListSchema(PageSchema):
    session_id = fields.String(metadata={"description": "Only those of this session."})
    kind = Choice(
        {f"{KIND_PREFIX}UNSPECIFIED": None, **KINDS},
        load_default=None,
        allow_none=False,
        description="Only those of this kind; unspecified, both.",
    )


class DownloadSchema(QuerySchema):
    variant = Choice(
        {f"{VARIANT_PREFIX}ADAPTER": Part.ADAPTER, f"{VARIANT_PREFIX}MERGED": Part.MERGED},
        required=True,
        description="The adapter alone, or the whole model with the adapter merged into it.",
    )


class CheckpointFileSchema(AnswerSchema):
    filename = fields.String(
        required=True, metadata={"description": "The file's name.", "examples": ["adapter_model.safetensors"]}
    )
    url = fields.String(
        required=True,
        metadata={
            "description": "Where anyone who has the URL may GET the file for a while, without a key.",
            "examples": ["https://storage.example/01900a6e/adapter_model.safetensors?signature=abc"],
        },
    )
    size = fields.Integer(required=True, metadata={"description": "The file's size in bytes.", "examples": [58624]})


class CheckpointDownloadSchema(AnswerSchema):
    data = fields.List(fields.Nested(CheckpointFileSchema), required=True, metadata={"description": "All its files."})


def checkpoint_view(checkpoint: Checkpoint) -> dict[str, Any]:
    created_at = rfc3339(checkpoint.created_at)
    view = {
        "id": checkpoint.id,
        "kind": checkpoint.kind,
        "session_id": checkpoint.session_id,
        "base_model": checkpoint.spec.base_model.name,
        "lora_config": checkpoint.spec.lora,
        "step": checkpoint.step,
        "size": checkpoint.size,
        "created_at": created_at,
    }
    if checkpoint.kind is CheckpointKind.INFERENCE:
        view["registration"] = {"model_name": checkpoint.model_name, "registered_at": created_at}
    return view


def files_of(checkpoint: Checkpoint, part: Part) -> tuple[CheckpointFile, ...]:
    """The files of a variant. Raises ValidationError for a checkpoint that is not made to be downloaded."""
    if part not in checkpoint.files:
        raise refusal("variant", "only inference checkpoints can be downloaded, and this is a training checkpoint")
    return checkpoint.files[part]
