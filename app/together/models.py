"""The models that the SDK may ask for."""

from typing import Any

from app.placement import served_models
from app.state import state
from app.together.blueprint import PREFIX, Blueprint
from schemas.together.models import SupportedModelsSchema, supported_view

models = Blueprint("together_models", __name__, url_prefix=PREFIX, description="Base models.")


@models.route("/supported-models")
@models.response(200, SupportedModelsSchema)
def list_supported_models() -> dict[str, Any]:
    """List the base models that live workers serve, with this server's limits"""
    limits = state().settings.limits
    return {"data": [supported_view(card, limits) for card in served_models()]}
