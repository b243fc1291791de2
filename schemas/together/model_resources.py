"""Model resources: what they are asked for with, and how they are shown."""

from typing import Any

from marshmallow import fields, validate

from domain.model_resources import ModelResources, ModelResourcesSpec, ModelResourcesStatus
from domain.optim_step import Muon
from schemas.base import AnswerSchema, QuerySchema, RequestSchema
from schemas.bounds import INT32_MAX, Bounds
from schemas.fields import Choice, Flag, Integer, QueryFlag, prefixed
from schemas.operations import identifier, rfc3339, timestamp
from schemas.problems import refusal
from schemas.sessions import base_model_field
from schemas.together.models import GPU_TYPE
from schemas.together.pages import CreatedSchema, MetaSchema, SomeOf

STATUSES = prefixed(ModelResourcesStatus, "MODEL_RESOURCES_STATUS_")
# What the dialect also knows, and resources here never are.
NEVER = {f"MODEL_RESOURCES_STATUS_{name}": None for name in ("PENDING", "CREATING", "ERROR", "STOPPING")}
STRATEGIES = {f"MUON_SCALING_STRATEGY_{name}": name != "ORIGINAL" for name in ("MATCH_ADAM", "ORIGINAL", "UNSPECIFIED")}


class MuonConfigSchema(RequestSchema):
    scaling_strategy = Choice(
        STRATEGIES, load_default=True, description="Whether learning rates are those of Adam or of the original."
    )


class AdamConfigSchema(RequestSchema):
    """Adam has no settings beyond those of each step."""


class OptimizerConfigSchema(RequestSchema):
    adam = fields.Nested(AdamConfigSchema, metadata={"description": "Steps are AdamW's, which is the default."})
    muon = fields.Nested(MuonConfigSchema, metadata={"description": "Steps are Muon's."})


class AskedComputeSchema(RequestSchema):
    gpu_type = fields.String(
        validate=validate.OneOf([GPU_TYPE], error=f"must be {GPU_TYPE}"),
        metadata={"description": "Has no effect: the workers have the device they have."},
    )
    num_generator_replicas = Integer(
        Bounds(0, INT32_MAX),
        load_default=1,
        description="0: the sessions are not sampled from. More than 1 is the same as 1.",
    )


class CreateModelResourcesSchema(RequestSchema):
    base_model = base_model_field()
    base_weights_ref = fields.String(metadata={"description": "Refused: there is no model registry here."})
    compute_config = fields.Nested(AskedComputeSchema, load_default=lambda: AskedComputeSchema().load({}))
    inactive_timeout = Integer(
        Bounds(300, 86400), load_default=3600, description="Seconds without activity after which all of it expires."
    )
    lora_enabled = Flag(load_default=True, description="Only true: full weights are not trained here.")
    optimizer_config = fields.Nested(OptimizerConfigSchema, load_default=dict)


class ExtendExpirySchema(RequestSchema):
    seconds = Integer(Bounds(60, 86400), required=True, description="Stay for at least so long from now.")


class StopSchema(QuerySchema):
    force = QueryFlag(load_default=False, description="Stop the sessions too.")


class ListModelResourcesSchema(CreatedSchema):
    status = SomeOf({**STATUSES, **NEVER}, description="Only those in one of these.")


class ComputeSchema(AnswerSchema):
    num_generator_replicas = fields.Integer(required=True, metadata={"examples": [1]})


class MuonAnswerSchema(AnswerSchema):
    scaling_strategy = Choice(STRATEGIES, required=True, description="How steps are scaled.")


class OptimizerSchema(AnswerSchema):
    adam = fields.Dict(metadata={"description": "There if steps are AdamW's."})
    muon = fields.Nested(MuonAnswerSchema, metadata={"description": "There if steps are Muon's."})


class ModelResourcesSchema(AnswerSchema):
    id = identifier("The id of the model resources.")
    base_model = fields.String(required=True, metadata={"description": "The frozen model."})
    compute_config = fields.Nested(ComputeSchema, required=True)
    created_at = timestamp("When they were created.", required=True)
    created_by = identifier("The API key that made them.")
    expires_at = timestamp("When they expire, if nothing uses them until then; while READY.")
    inactive_timeout = fields.Integer(required=True, metadata={"description": "Seconds.", "examples": [3600]})
    lora_enabled = fields.Boolean(required=True, metadata={"description": "Always true."})
    optimizer_config = fields.Nested(OptimizerSchema, required=True)
    status = Choice(STATUSES, required=True, description="Ready at once: there is nothing to wait for.")
    status_details = fields.Dict(required=True, metadata={"description": "Empty: there is no queue."})
    updated_at = timestamp("When they last changed.", required=True)


class ModelResourcesListSchema(AnswerSchema):
    data = fields.List(fields.Nested(ModelResourcesSchema), required=True)
    meta = fields.Nested(MetaSchema, required=True)


class EstimateSchema(AnswerSchema):
    currency = fields.String(required=True, metadata={"description": "ISO 4217.", "examples": ["USD"]})
    price_per_hour = fields.Float(required=True, metadata={"description": "0: it is your own hardware."})


def model_resources_spec(body: dict[str, Any], owner: str) -> ModelResourcesSpec:
    """Raises ValidationError for what this server does not have."""
    if "base_weights_ref" in body:
        raise refusal("base_weights_ref", "there is no model registry here; give the weights as base_model")
    if not body["lora_enabled"]:
        raise refusal("lora_enabled", "must be true: this server trains adapters, not full weights")
    optimizer = body["optimizer_config"]
    if len(optimizer) == 2:
        raise refusal("optimizer_config", "must have adam or muon, not both")
    return ModelResourcesSpec(
        base_model=body["base_model"],
        owner=owner,
        inactive_timeout=body["inactive_timeout"],
        generator_replicas=body["compute_config"]["num_generator_replicas"],
        muon=Muon(match_adam=optimizer["muon"]["scaling_strategy"]) if "muon" in optimizer else None,
    )


def model_resources_view(resources: ModelResources) -> dict[str, Any]:
    spec, muon = resources.spec, resources.spec.muon
    view = {
        "id": resources.id,
        "base_model": spec.base_model,
        "compute_config": {"num_generator_replicas": spec.generator_replicas},
        "created_at": rfc3339(resources.created_at),
        "created_by": spec.owner,
        "inactive_timeout": spec.inactive_timeout,
        "lora_enabled": True,
        "optimizer_config": {"muon": {"scaling_strategy": muon.match_adam}} if muon else {"adam": {}},
        "status": resources.status,
        "status_details": {},
        "updated_at": rfc3339(resources.updated_at),
    }
    return view if resources.expires_at is None else {**view, "expires_at": rfc3339(resources.expires_at)}
