"""Sessions of Together's API: how one is asked for, listed and shown."""

import secrets
from typing import Any

import msgspec
from marshmallow import fields

from domain.checkpoint import Checkpoint
from domain.limits import Limits
from domain.model import ModelCard
from domain.model_resources import ModelResources
from domain.session import Session, SessionSpec, SessionStatus
from schemas.base import AnswerSchema
from schemas.bounds import INT64
from schemas.fields import Choice, Flag, Integer, prefixed
from schemas.operations import identifier, rfc3339, timestamp
from schemas.problems import refusal
from schemas.sessions import LoraConfigAnswerSchema, LoraConfigSchema, lora_config
from schemas.together.checkpoints import InferenceCheckpointSchema, SavedSchema, saved_view
from schemas.together.labels import LabelsSchema, MetadataAnswerSchema, metadata_view
from schemas.together.pages import CreatedSchema, MetaSchema, SomeOf

STATUSES = prefixed(SessionStatus, "TRAINING_SESSION_STATUS_")


class SeededLoraSchema(LoraConfigSchema):
    seed = Integer(INT64, description="Draws the adapter's first weights; at random when absent.")
    train_unembed = Flag(load_default=False, description="Only false: the output head is not adapted here.")


class CreateSessionSchema(LabelsSchema):
    model_resources_id = fields.String(required=True, metadata={"description": "What the session is attached to."})
    lora_config = fields.Nested(SeededLoraSchema, load_default=lambda: SeededLoraSchema().load({}))
    resume_from_checkpoint_id = fields.String(metadata={"description": "A training checkpoint to go on from."})
    load_optimizer = Flag(description="Take over optimizer state and step too, which is the default.")


class ListSessionsSchema(CreatedSchema):
    model_resources_id = fields.String(metadata={"description": "Only those attached to these."})
    status = SomeOf(STATUSES, description="Only those in one of these.")


class PolicyStateSchema(AnswerSchema):
    applied_weights_version = fields.Integer(required=True, metadata={"description": "What samples use."})
    pending_publish = fields.Boolean(required=True, metadata={"description": "Whether a weights-sync is to come."})
    target_weights_version = fields.Integer(required=True, metadata={"description": "What samples will use then."})
    trainer_step = fields.Integer(required=True, metadata={"description": "Finished optim-steps."})


class SessionErrorSchema(AnswerSchema):
    code = fields.String(required=True, metadata={"enum": ["TRAINING_SESSION_ERROR_CODE_SESSION_FAILED"]})
    message = fields.String(required=True)
    occurred_at = timestamp("When it happened.", required=True)


class LoraAnswerSchema(LoraConfigAnswerSchema):
    seed = fields.Integer(required=True, metadata={"description": "What the first weights were drawn from."})
    train_unembed = fields.Boolean(required=True, metadata={"description": "Always false."})


class SessionSchema(AnswerSchema):
    id = identifier("The session's id.")
    base_model = fields.String(required=True, metadata={"description": "The frozen model."})
    created_at = timestamp("When it was created.", required=True)
    created_by = identifier("The API key that made it.")
    display_name = fields.String(metadata={"description": "What it is called."})
    error = fields.Nested(SessionErrorSchema, metadata={"description": "Why it failed."})
    inference_checkpoints = fields.List(fields.Nested(InferenceCheckpointSchema), required=True)
    lora_config = fields.Nested(LoraAnswerSchema, required=True)
    metadata = fields.Nested(MetadataAnswerSchema, required=True)
    model_resources_id = identifier("What it is attached to.")
    policy_state = fields.Nested(PolicyStateSchema, required=True)
    resume_from_checkpoint_id = fields.String(metadata={"description": "What it goes on from."})
    status = Choice(STATUSES, required=True, description="Where the session is.")
    step = fields.Integer(required=True, metadata={"description": "Finished optim-steps.", "examples": [0]})
    training_checkpoints = fields.List(fields.Nested(SavedSchema), required=True)
    updated_at = timestamp("When it last changed.", required=True)


class SessionListSchema(AnswerSchema):
    data = fields.List(fields.Nested(SessionSchema), required=True)
    meta = fields.Nested(MetaSchema, required=True)


def session_spec(
    body: dict[str, Any], resources: ModelResources, card: ModelCard, limits: Limits, checkpoint: Checkpoint | None
) -> SessionSpec:
    """Raises ValidationError for what the server does not offer."""
    asked = dict(body["lora_config"])
    seed = asked.pop("seed", None)
    if asked.pop("train_unembed"):
        raise refusal("lora_config.train_unembed", "must be false: the output head is not adapted here")
    if checkpoint is None and "load_optimizer" in body:
        raise refusal("load_optimizer", "needs resume_from_checkpoint_id")
    return SessionSpec(
        base_model=card,
        lora=lora_config(asked, card, limits, checkpoint, "resume_from_checkpoint_id"),
        seed=secrets.randbits(63) if seed is None else seed,
        checkpoint_id=checkpoint.id if checkpoint else None,
        load_optimizer=body.get("load_optimizer", True),
        owner=resources.spec.owner,
        resources_id=resources.id,
        publishes=True,
        has_generator=resources.spec.generator_replicas > 0,
        muon=resources.spec.muon,
    )


def session_view(session: Session, target: int | None, training: list[Checkpoint], inference: list[Checkpoint]) -> Any:
    """`target` is the step that the last weights-sync to come will publish, None when there is none to come."""
    spec, labels = session.spec, session.labels
    view = {
        "id": session.id,
        "base_model": spec.base_model.name,
        "created_at": rfc3339(session.created_at),
        "created_by": session.owner,
        "inference_checkpoints": [saved_view(checkpoint) for checkpoint in inference],
        "lora_config": {**msgspec.structs.asdict(spec.lora), "seed": spec.seed, "train_unembed": False},
        "metadata": metadata_view(labels),
        "model_resources_id": spec.resources_id,
        "policy_state": {
            "applied_weights_version": session.published_step,
            "pending_publish": target is not None,
            "target_weights_version": session.published_step if target is None else target,
            "trainer_step": session.step,
        },
        "status": session.status,
        "step": session.step,
        "training_checkpoints": [saved_view(checkpoint) for checkpoint in training],
        "updated_at": rfc3339(session.updated_at),
        "display_name": labels.display_name or None,
        "resume_from_checkpoint_id": spec.checkpoint_id,
        "error": _error(session),
    }
    return {name: value for name, value in view.items() if value is not None}


def _error(session: Session) -> dict[str, Any] | None:
    if session.status is not SessionStatus.ERROR:
        return None
    code = "TRAINING_SESSION_ERROR_CODE_SESSION_FAILED"
    return {"code": code, "message": session.reason or "", "occurred_at": rfc3339(session.updated_at)}
