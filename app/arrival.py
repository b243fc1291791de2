"""When a request came, to tell how long it took to arrive and to be checked."""

import time

from flask import Flask, g, request

from app.server.environ import ARRIVED_AT


def register(app: Flask) -> None:
    app.before_request(note)


def note() -> None:
    """With the head of the request, where the server tells; else before the body is read, which is left to whoever
    needs it."""
    g.arrived_at = request.environ.get(ARRIVED_AT) or time.perf_counter()


def seconds_since_arrival() -> float:
    arrived_at: float = g.arrived_at
    return time.perf_counter() - arrived_at
