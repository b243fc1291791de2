"""One session: its curves, its operations as a timeline, its checkpoints; stopped here, after a question."""

from itertools import islice

import msgspec
from flask import redirect, render_template, url_for
from werkzeug.wrappers import Response

from app.auth import caller
from app.console.blueprint import PREFIX, console
from app.console.charts import CHARTS
from app.console.timeline import PHASES, timeline
from app.state import state
from domain.operation import OperationStatus
from domain.session import Session, SessionStatus

MOST_OPERATIONS = 40
MOST_CHECKPOINTS = 40
SESSION = f"{PREFIX}/sessions/<id:session_id>"
LIVE = (SessionStatus.CREATING, SessionStatus.RUNNING, SessionStatus.STOPPING)
ACTIVE = LIVE[:2]


def own(session_id: str) -> Session:
    """A session of the visitor's, whichever door made it. Raises NotFoundError, for another's as for none."""
    return state().store.sessions.get(session_id, caller())


@console.get(SESSION)
def session(session_id: str) -> str:
    found, store = own(session_id), state().store
    operations = store.operations.list(session_id, MOST_OPERATIONS, 0)
    return render_template(
        "console/session.html",
        session=found,
        glance=store.curves.glances([session_id])[0],
        is_live=found.status in LIVE,
        is_active=found.status in ACTIVE,
        charts=msgspec.to_builtins(CHARTS),
        operations=operations,
        pending=OperationStatus.PENDING,
        most=MOST_OPERATIONS,
        timeline=timeline(operations),
        phases=PHASES,
        checkpoints=list(islice(store.checkpoints.newest(caller(), session_id), MOST_CHECKPOINTS)),
    )


@console.get(f"{SESSION}/stop")
def ask_to_stop(session_id: str) -> str:
    own(session_id)
    return render_template(
        "console/confirm.html",
        question="Stop this session?",
        meaning="What runs finishes, what waits fails, and results stay readable. It cannot be started again.",
        verb="Stop the session",
        action=url_for("console.stop", session_id=session_id),
        back=url_for("console.session", session_id=session_id),
    )


@console.post(f"{SESSION}/stop")
def stop(session_id: str) -> Response:
    own(session_id)
    state().store.sessions.stop(session_id)
    return redirect(url_for("console.session", session_id=session_id))
