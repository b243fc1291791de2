"""Training sessions: how one is asked for, listed and shown."""

import secrets
from typing import Any

import msgspec
from marshmallow import fields, validate

from domain.checkpoint import Checkpoint, CheckpointKind
from domain.limits import Limits
from domain.model import ModelCard
from domain.session import LoraConfig, Session, SessionSpec, SessionStatus
from schemas.base import AnswerSchema, RequestSchema
from schemas.bounds import INT32_MAX, Bounds
from schemas.fields import Choice, Integer, Number
from schemas.models import adaptation_view, adapted_modules, unadapted_modules
from schemas.operations import identifier, rfc3339, timestamp
from schemas.pages import PageSchema
from schemas.problems import refusal
from schemas.time_limit import timeout_seconds

STATUS_PREFIX = "TRAINING_SESSION_STATUS_"
# A native session does not expire: it belongs to no model resources.
STATUSES = {f"{STATUS_PREFIX}{status.name}": status for status in SessionStatus if status is not SessionStatus.EXPIRED}
DEFAULTS = LoraConfig()
MOST_NAME_CHARACTERS = 256


class LoraConfigSchema(RequestSchema):
    """What is not given comes from the checkpoint that the session goes on from, or else from the defaults."""

    rank = Integer(Bounds(1, INT32_MAX), description=f"Rank of the adapter; {DEFAULTS.rank} unless given.")
    alpha = Integer(
        Bounds(1, INT32_MAX), description=f"The adapter is scaled by alpha / rank; {DEFAULTS.alpha} unless given."
    )
    dropout = Number(
        Bounds(0.0, 1.0, below=1.0),
        description=f"Dropout of the adapter's input, in cross-entropy only; {DEFAULTS.dropout} unless given.",
    )


def base_model_field() -> fields.String:
    """The model to train on, the same through every API."""
    return fields.String(
        required=True,
        validate=validate.Length(1, MOST_NAME_CHARACTERS, error="must have {min} to {max} characters"),
        metadata={
            "description": "A model that a worker serves, or a Hugging Face hub id that it has or may fetch.",
            "examples": ["HuggingFaceTB/SmolLM2-135M-Instruct"],
        },
    )


class CreateSessionSchema(RequestSchema):
    base_model = base_model_field()
    checkpoint_id = fields.String(
        metadata={"description": "A training checkpoint to go on from: its weights, optimizer state and step."}
    )
    lora_config = fields.Nested(
        LoraConfigSchema,
        load_default=dict,
        metadata={"description": "Fields not given are those of the checkpoint, or else the defaults."},
    )
    timeout_seconds = timeout_seconds()


class LoraConfigAnswerSchema(AnswerSchema):
    rank = fields.Integer(required=True, metadata={"examples": [DEFAULTS.rank]})
    alpha = fields.Integer(required=True, metadata={"examples": [DEFAULTS.alpha]})
    dropout = fields.Float(required=True, metadata={"examples": [DEFAULTS.dropout]})


class SessionSchema(AnswerSchema):
    session_id = identifier("The session's id.")
    status = Choice(STATUSES, required=True, description="Where the session is.")
    base_model = fields.String(
        required=True,
        metadata={"description": "The frozen model.", "examples": ["HuggingFaceTB/SmolLM2-135M-Instruct"]},
    )
    checkpoint_id = fields.String(metadata={"description": "The checkpoint it went on from, if any."})
    step = fields.Integer(required=True, metadata={"description": "Finished optim-steps.", "examples": [0]})
    created_at = timestamp("When it was created.", required=True)
    updated_at = timestamp("When it last changed.", required=True)
    lora_config = fields.Nested(LoraConfigAnswerSchema, required=True)
    reason = fields.String(metadata={"description": "Why it ended, where it was not simply stopped."})
    adapted_modules = adapted_modules()
    unadapted_modules = unadapted_modules()


class SessionListSchema(PageSchema):
    status = Choice(
        {f"{STATUS_PREFIX}UNSPECIFIED": None, **STATUSES},
        load_default=None,
        allow_none=False,
        description="Only sessions in this status; unspecified, all of them.",
    )


def session_spec(
    body: dict[str, Any], card: ModelCard, limits: Limits, owner: str, checkpoint: Checkpoint | None = None
) -> SessionSpec:
    """What the session is made from. Raises ValidationError for what the server does not offer, and for a
    `checkpoint` that it cannot go on from."""
    lora = lora_config(body["lora_config"], card, limits, checkpoint, "checkpoint_id")
    checkpoint_id = checkpoint.id if checkpoint else None
    return SessionSpec(base_model=card, lora=lora, seed=secrets.randbits(63), checkpoint_id=checkpoint_id, owner=owner)


def lora_config(
    asked: dict[str, Any], card: ModelCard, limits: Limits, checkpoint: Checkpoint | None, field: str
) -> LoraConfig:
    """What is asked for, over that of the checkpoint or the defaults. Raises ValidationError; `field` names the
    checkpoint."""
    lora = msgspec.structs.replace(checkpoint.spec.lora if checkpoint else DEFAULTS, **asked)
    if checkpoint:
        _check_checkpoint(checkpoint, card, lora, field)
    if lora.rank > limits.max_rank:
        raise refusal("lora_config.rank", f"must be at most {limits.max_rank}")
    return lora


def _check_checkpoint(checkpoint: Checkpoint, card: ModelCard, lora: LoraConfig, field: str) -> None:
    if checkpoint.kind is not CheckpointKind.TRAINING:
        raise refusal(field, "is an inference checkpoint; training goes on from training checkpoints only")
    if checkpoint.spec.base_model.name != card.name:
        raise refusal(field, f"is of the base model {checkpoint.spec.base_model.name}")
    if checkpoint.spec.lora.rank != lora.rank:
        raise refusal("lora_config.rank", f"must be {checkpoint.spec.lora.rank}, the rank of the checkpoint")


def session_view(session: Session) -> dict[str, Any]:
    """The fields of a SessionSchema that this session has."""
    view = {
        "session_id": session.id,
        "status": session.status,
        "base_model": session.spec.base_model.name,
        "step": session.step,
        "created_at": rfc3339(session.created_at),
        "updated_at": rfc3339(session.updated_at),
        "lora_config": session.spec.lora,
    }
    optional = {"checkpoint_id": session.spec.checkpoint_id, "reason": session.reason}
    view |= {name: value for name, value in optional.items() if value is not None}
    return view | adaptation_view(session.spec.base_model)
