"""The workers that are known, and who holds what."""

from typing import Any

from app.auth import caller
from app.blueprint import Blueprint
from app.state import state
from schemas.workers import WorkerSchema
from store.workers import Worker

workers = Blueprint("workers", __name__, url_prefix="/v1", description="What the sessions run on.")


@workers.route("/workers")
@workers.response(200, WorkerSchema(many=True))
def list_workers() -> list[dict[str, Any]]:
    """List the workers and the sessions that they hold

    One whose heartbeat has been missed stays in the list until its sessions are with others. Of sessions that
    another key made there is only the number.
    """
    return [_view(worker) for worker in state().store.workers.known()]


def _view(worker: Worker) -> dict[str, Any]:
    said = worker.announcement
    return {
        "worker_id": worker.id,
        "device": said.device,
        "base_models": [card.name for card in worker.models],
        "heartbeat_age": worker.heartbeat_age,
        "capacity": said.capacity,
        "session_count": worker.session_count,
        "resident_count": said.resident,
        "resident_bytes": said.resident_bytes,
        "free_bytes": said.free_bytes,
        "sessions": state().store.workers.held(worker.id, caller()),
    }
