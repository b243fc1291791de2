"""The points of a session's curves as JSON, from where the page has got to."""

import re
from typing import Any

import msgspec
from flask import request
from werkzeug.exceptions import BadRequest

from app.auth import own_session
from app.console.blueprint import console
from app.console.charts import LEFT_OUT
from app.console.session import SESSION
from app.state import state
from store.metric_series import Point

MOST_POINTS = 1000
POINT_ID = re.compile(r"([0-9]{1,20}-[0-9]{1,20})?")


@console.get(f"{SESSION}/curves")
def curves(session_id: str) -> dict[str, Any]:
    """`more` says that there are points beyond these; `is_live`, that there may be some day."""
    is_live = not own_session(session_id).status.is_ended
    measured = state().store.metric_series.measured(session_id, _after("measured"), MOST_POINTS)
    logged = state().store.metric_series.logged(session_id, _after("logged"), MOST_POINTS)
    more = MOST_POINTS in (len(measured), len(logged))
    return {"measured": _shown(measured), "logged": _shown(logged), "more": more, "is_live": is_live}


def _after(name: str) -> str:
    after = request.args.get(name, "")
    if not POINT_ID.fullmatch(after):
        raise BadRequest(f"{name} is the id of a point, or nothing.")
    return after


def _shown(points: list[Point]) -> list[dict[str, Any]]:
    return [
        {
            **msgspec.structs.asdict(point),
            "values": {name: value for name, value in point.values.items() if name not in LEFT_OUT},
            "tokens": point.tokens,
        }
        for point in points
    ]
