"""Numbers that a user attaches to the steps of a session, to be seen beside what its operations measure."""

from typing import Any

from app.auth import own_session
from app.blueprint import Blueprint
from app.idempotency import current_idempotency_key
from app.routes.sessions import PREFIX
from app.state import state
from domain.session import Dialect
from schemas import examples
from schemas.log import LogBodySchema, LoggedSchema

logs = Blueprint("log", __name__, url_prefix=PREFIX, description="Numbers of your own beside the server's.")


@logs.route("/<id:session_id>:log", methods=("POST",))
@logs.arguments(LogBodySchema, example=examples.LOGGED)
@logs.response(200, LoggedSchema)
def log_value(body: dict[str, Any], session_id: str) -> dict[str, Any]:
    """Attach a number to a step

    The console draws a curve for each name, 32 names at most; the newest points of a session are kept.
    """
    own_session(session_id, Dialect.NATIVE)
    state().store.metric_series.log(session_id, **body, idempotency_key=current_idempotency_key())
    return body
