"""Traces of requests, where CELERITY_TRACES asks for them."""

import os

from celery import current_app
from flask import Flask

from domain.operation import OperationKind

# What is asked for every few seconds by machines, unless the variable of the stock instrumentation says otherwise.
EXCLUDED_VARIABLE, EXCLUDED = "OTEL_PYTHON_FLASK_EXCLUDED_URLS", "healthz,readyz,metrics,console/.*"


def trace(app: Flask) -> None:
    from opentelemetry.instrumentation.flask import FlaskInstrumentor

    FlaskInstrumentor().instrument_app(app, excluded_urls=os.environ.get(EXCLUDED_VARIABLE, EXCLUDED))
    # Celery's instrumentation ends the span of a message only where it finds the task by its name.
    for kind in OperationKind:
        current_app.task(name=kind.task_name)(_run_by_a_worker)


def _run_by_a_worker() -> None:
    raise AssertionError("tasks are run by workers")
