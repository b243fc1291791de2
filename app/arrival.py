"""When a request came, to tell how long it took to arrive and to be checked."""

import time

from flask import Flask, g


def register(app: Flask) -> None:
    app.before_request(note)


def note() -> None:
    """Before the body is read: that is left to whoever needs it."""
    g.arrived_at = time.perf_counter()


def seconds_since_arrival() -> float:
    arrived_at: float = g.arrived_at
    return time.perf_counter() - arrived_at
