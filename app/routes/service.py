"""For whoever runs the server: is it alive, is it ready, what has it done."""

from http import HTTPStatus

from flask import Response
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from app.blueprint import Blueprint
from app.errors import OBJECTS_AWAY, UnavailableError
from app.metrics import StoreCollector
from app.placement import served_models
from app.state import state
from schemas.service import HealthSchema

service = Blueprint("service", __name__, description="Health and metrics.")


@service.route("/healthz")
@service.doc(security=[])
@service.response(200, HealthSchema)
def get_health() -> dict[str, str]:
    """Whether this process is alive"""
    return {"status": "ok"}


@service.route("/readyz")
@service.doc(security=[])
@service.refuses(HTTPStatus.SERVICE_UNAVAILABLE)
@service.response(200, HealthSchema)
def get_readiness() -> dict[str, str]:
    """Whether a session could be created and run"""
    state().store.check_writable()
    if not state().objects_check.is_good():
        raise UnavailableError(OBJECTS_AWAY)
    if not served_models():
        raise UnavailableError("no live worker serves a model yet")
    return {"status": "ok"}


@service.route("/metrics")
@service.response(200, {"type": "string"}, content_type=CONTENT_TYPE_LATEST)
def get_metrics() -> Response:
    """What the server has done and holds, over all API keys, for Prometheus

    It needs a key like everything else, unless the server is set to show it to anyone.
    """
    registry = CollectorRegistry()
    registry.register(StoreCollector(state().store))
    return Response(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)
