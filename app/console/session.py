"""One session: its curves, its operations as a timeline, its checkpoints; stopped here, after a question."""

from itertools import islice

import msgspec
from flask import redirect, render_template, url_for
from werkzeug.wrappers import Response

from app.auth import caller, own_session
from app.console.blueprint import PREFIX, console
from app.console.charts import CHARTS
from app.console.timeline import PHASES, timeline
from app.state import state
from domain.operation import OperationStatus

MOST_OPERATIONS = 40
MOST_CHECKPOINTS = 40
SESSION = f"{PREFIX}/sessions/<id:session_id>"


@console.get(SESSION)
def session(session_id: str) -> str:
    found, store = own_session(session_id), state().store
    operations = store.operations.list(session_id, MOST_OPERATIONS, 0)
    return render_template(
        "console/session.html",
        session=found,
        latest=store.metric_series.latest([session_id])[0],
        is_live=not found.status.is_ended,
        is_active=found.status.is_active,
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
    own_session(session_id)
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
    own_session(session_id)
    state().store.sessions.stop(session_id)
    return redirect(url_for("console.session", session_id=session_id))
