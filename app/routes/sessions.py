"""Training sessions: create, list, read, stop."""

import logging
from typing import Any

from app.auth import caller, own_session
from app.blueprint import Blueprint
from app.checkpoint_of import checkpoint_of
from app.idempotency import current_idempotency_key
from app.placement import candidates, find_model
from app.state import state
from domain.operation import OperationKind
from domain.session import Dialect
from schemas.pages import EmptySchema
from schemas.sessions import CreateSessionSchema, SessionListSchema, SessionSchema, session_spec, session_view
from schemas.time_limit import check_timeout

PREFIX = "/v1/rl/training-sessions"

log = logging.getLogger(__name__)

sessions = Blueprint("sessions", __name__, url_prefix=PREFIX, description="One adapter over one base model.")


@sessions.route("", methods=("POST",))
@sessions.arguments(CreateSessionSchema)
@sessions.response(200, SessionSchema)
def create_training_session(body: dict[str, Any]) -> dict[str, Any]:
    """Create a training session

    Answers at once; operations are accepted from then on and run when the session is ready.
    """
    card = find_model(body["base_model"])
    checkpoint = checkpoint_of(body["checkpoint_id"], "checkpoint_id") if "checkpoint_id" in body else None
    spec = session_spec(body, card, state().settings.limits, caller(), checkpoint)
    timeout = body.get("timeout_seconds")
    check_timeout(timeout, OperationKind.CREATE_SESSION, state().settings.time_limits)
    session = state().store.sessions.create(
        spec, candidates(spec), current_idempotency_key(), checkpoint, timeout_seconds=timeout
    )
    log.info("session %s of %s created on worker %s", session.id, session.owner, session.worker_id,
             extra={"session_id": session.id})  # fmt: skip
    return session_view(session)


@sessions.route("")
@sessions.arguments(SessionListSchema, location="query")
@sessions.response(200, SessionSchema(many=True))
def list_training_sessions(query: dict[str, Any]) -> list[dict[str, Any]]:
    """List training sessions, newest first"""
    return [session_view(session) for session in state().store.sessions.list(caller(), **query)]


@sessions.route("/<id:session_id>")
@sessions.response(200, SessionSchema)
def get_training_session(session_id: str) -> dict[str, Any]:
    """Read a training session"""
    return session_view(own_session(session_id, Dialect.NATIVE))


@sessions.route("/<id:session_id>:stop", methods=("POST",))
@sessions.arguments(EmptySchema, required=False)
@sessions.response(200, SessionSchema)
def stop_training_session(_: dict[str, Any], session_id: str) -> dict[str, Any]:
    """Stop a training session

    The running operation finishes, waiting ones fail, results stay readable. Stopping again changes nothing.
    """
    own_session(session_id, Dialect.NATIVE)
    log.info("session %s is to stop", session_id, extra={"session_id": session_id})
    return session_view(state().store.sessions.stop(session_id))
