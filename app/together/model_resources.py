"""Model resources: created, read, listed, kept longer, stopped."""

from typing import Any

from app.auth import caller
from app.idempotency import current_idempotency_key
from app.placement import find_model
from app.state import state
from app.together.blueprint import PREFIX, Blueprint, is_mine
from domain.model_resources import ModelResources
from schemas.together.model_resources import (
    CreateModelResourcesSchema,
    EstimateSchema,
    ExtendExpirySchema,
    ListModelResourcesSchema,
    ModelResourcesListSchema,
    ModelResourcesSchema,
    StopSchema,
    model_resources_spec,
    model_resources_view,
)
from schemas.together.pages import page

model_resources = Blueprint(
    "together_model_resources",
    __name__,
    url_prefix=f"{PREFIX}/model-resources",
    description="What sessions are attached to, and expire with.",
)


@model_resources.route("", methods=("POST",))
@model_resources.arguments(CreateModelResourcesSchema)
@model_resources.response(200, ModelResourcesSchema)
def create_model_resources(body: dict[str, Any]) -> dict[str, Any]:
    """Create model resources

    They are ready at once: the workers load a base model when its first session comes.
    """
    find_model(body["base_model"])
    spec = model_resources_spec(body, caller())
    return model_resources_view(state().store.model_resources.create(spec, current_idempotency_key()))


@model_resources.route("/estimate-cost", methods=("POST",))
@model_resources.arguments(CreateModelResourcesSchema)
@model_resources.response(200, EstimateSchema)
def estimate_model_resources_cost(body: dict[str, Any]) -> dict[str, Any]:
    """Estimate what they cost

    Nothing: it is your own hardware.
    """
    find_model(body["base_model"])
    model_resources_spec(body, caller())
    return {"currency": "USD", "price_per_hour": 0.0}


@model_resources.route("")
@model_resources.arguments(ListModelResourcesSchema, location="query")
@model_resources.response(200, ModelResourcesListSchema)
def list_model_resources(query: dict[str, Any]) -> Any:
    """List model resources, newest first"""
    statuses, mine = query["status"], is_mine(query.get("created_by"))
    newest = state().store.model_resources.newest(caller())
    return page(newest, query, lambda each: mine and (not statuses or each.status in statuses), model_resources_view)


@model_resources.route("/<id:model_resources_id>")
@model_resources.response(200, ModelResourcesSchema)
def get_model_resources(model_resources_id: str) -> dict[str, Any]:
    """Read model resources"""
    return model_resources_view(_own(model_resources_id))


@model_resources.route("/<id:model_resources_id>/extend-expiry", methods=("POST",))
@model_resources.arguments(ExtendExpirySchema)
@model_resources.response(200, ModelResourcesSchema)
def extend_model_resources_expiry(body: dict[str, Any], model_resources_id: str) -> dict[str, Any]:
    """Keep them for at least so long from now"""
    _own(model_resources_id)
    state().store.model_resources.extend(model_resources_id, body["seconds"])
    return model_resources_view(_own(model_resources_id))


@model_resources.route("/<id:model_resources_id>/stop", methods=("POST",))
@model_resources.arguments(StopSchema, location="query")
@model_resources.response(200, ModelResourcesSchema)
def stop_model_resources(query: dict[str, Any], model_resources_id: str) -> dict[str, Any]:
    """Stop them, and with force their sessions"""
    _own(model_resources_id)
    state().store.model_resources.stop(
        model_resources_id, force=query["force"], idempotency_key=current_idempotency_key()
    )
    return model_resources_view(_own(model_resources_id))


def _own(model_resources_id: str) -> ModelResources:
    return state().store.model_resources.get(model_resources_id, caller())
