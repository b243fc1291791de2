"""The first page: sessions, workers, and anything that is wrong."""

from itertools import islice

from flask import render_template

from app.auth import caller
from app.console.alerts import alerts
from app.console.blueprint import console
from app.state import state

MOST_SESSIONS = 50


@console.get("/")
def overview() -> str:
    store, owner = state().store, caller()
    sessions = list(islice(store.sessions.newest(owner), MOST_SESSIONS))
    latest = store.metric_series.latest([session.id for session in sessions])
    workers = store.workers.known()
    return render_template(
        "console/overview.html",
        rows=list(zip(sessions, latest, strict=True)),
        most=MOST_SESSIONS,
        workers=workers,
        unended=store.operations.unended(owner),
        alerts=alerts(workers, sessions, state().settings.heartbeat_timeout),
    )
