"""The base models that can be trained."""

from typing import Any

from app.blueprint import Blueprint
from app.placement import served_models
from schemas.models import ModelSchema, model_view

models = Blueprint("models", __name__, url_prefix="/v1", description="Base models.")


@models.route("/models")
@models.response(200, ModelSchema(many=True))
def list_models() -> list[dict[str, Any]]:
    """List the base models that live workers serve"""
    return [model_view(card) for card in served_models()]
