"""Sessions of Together's API: created, read, changed, listed, stopped."""

from typing import Any

from app.auth import caller, own_session
from app.checkpoint_of import checkpoint_of
from app.idempotency import current_idempotency_key
from app.placement import candidates, find_model
from app.state import state
from app.together.blueprint import SESSIONS, Blueprint, is_mine
from app.waiting import held, preferred_wait
from domain.checkpoint import CheckpointKind
from domain.model_resources import ModelResources
from domain.session import Dialect, Labels, Session
from schemas.pages import EmptySchema
from schemas.problems import refusal
from schemas.together.labels import LabelsSchema, changed
from schemas.together.pages import page
from schemas.together.sessions import (
    CreateSessionSchema,
    ListSessionsSchema,
    SessionListSchema,
    SessionSchema,
    session_spec,
    session_view,
)
from store.errors import NotFoundError

MOST_CHECKPOINTS = 100

sessions = Blueprint("together_sessions", __name__, url_prefix=SESSIONS, description="One adapter over one base model.")


@sessions.route("", methods=("POST",))
@sessions.arguments(CreateSessionSchema)
@sessions.response(200, SessionSchema)
def create_session(body: dict[str, Any]) -> Any:
    """Create a training session, attached to model resources"""
    resources = _resources(body["model_resources_id"])
    card, field = find_model(resources.spec.base_model), "resume_from_checkpoint_id"
    checkpoint = checkpoint_of(body[field], field) if field in body else None
    spec = session_spec(body, resources, card, state().settings.limits, checkpoint)
    labels = changed(Labels(), body)
    return _view(state().store.sessions.create(spec, candidates(spec), current_idempotency_key(), checkpoint, labels))


@sessions.route("")
@sessions.arguments(ListSessionsSchema, location="query")
@sessions.response(200, SessionListSchema)
def list_sessions(query: dict[str, Any]) -> Any:
    """List training sessions, newest first"""
    mine, attached_to = is_mine(query.get("created_by")), query.get("model_resources_id")
    statuses = query["status"] or ()

    def keep(session: Session) -> bool:
        return (
            mine and attached_to in (None, session.spec.resources_id) and (not statuses or session.status in statuses)
        )

    # The entry that a page comes after may have another status by now.
    among = () if "after" in query else statuses
    return page(state().store.sessions.newest_of_resources(caller(), among), query, keep, _view)


@sessions.route("/<id:session_id>")
@sessions.doc(parameters=["Prefer"])
@sessions.response(200, SessionSchema)
def get_session(session_id: str) -> Any:
    """Read a training session

    The answer is held while it is being created or stopped.
    """
    own_session(session_id, Dialect.TOGETHER)
    seconds, _ = preferred_wait(state().settings.polling_wait)
    with held() as may_wait:
        return _view(state().store.operations.settled(session_id, seconds if may_wait else 0.0))


@sessions.route("/<id:session_id>", methods=("PATCH",))
@sessions.arguments(LabelsSchema)
@sessions.response(200, SessionSchema)
def update_session(body: dict[str, Any], session_id: str) -> Any:
    """Change what a training session is called"""
    session = own_session(session_id, Dialect.TOGETHER)
    return _view(state().store.sessions.relabel(session_id, changed(session.labels, body)))


@sessions.route("/<id:session_id>/stop", methods=("POST",))
@sessions.arguments(EmptySchema, required=False)
@sessions.response(200, SessionSchema)
def stop_session(_: dict[str, Any], session_id: str) -> Any:
    """Stop a training session

    The running operation finishes, waiting ones fail, results stay readable. Stopping again changes nothing.
    """
    own_session(session_id, Dialect.TOGETHER)
    return _view(state().store.sessions.stop(session_id))


def _resources(resources_id: str) -> ModelResources:
    try:
        return state().store.model_resources.get(resources_id, caller())
    except NotFoundError as error:
        raise refusal("model_resources_id", "unknown model resources") from error


def _view(session: Session) -> Any:
    store = state().store
    training, inference = (
        store.checkpoints.list(caller(), MOST_CHECKPOINTS, 0, session.id, kind) for kind in CheckpointKind
    )
    target = next(reversed(store.operations.steps_to_publish(session.id).values()), None)
    return session_view(session, target, training, inference)
