"""Traces of operations, from the POST through Celery to the engine, where CELERITY_TRACES asks for them.

Without it nothing of OpenTelemetry is imported, and all of this does nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracing.tracer import OperationTracer

_tracer: "OperationTracer | None" = None


def start_tracing(service: str) -> None:
    """From now on this process, which must not fork any more, tells the collector of the OTEL_ variables what it does,
    under the name of `service` unless they give another."""
    global _tracer
    from tracing.tracer import OperationTracer

    _tracer = OperationTracer(service)


def mark(session_id: str, operation_id: str) -> None:
    """Says which operation the current span is about."""
    if _tracer:
        _tracer.mark(session_id, operation_id)


@contextmanager
def span(name: str, session_id: str, operation_id: str) -> Iterator[None]:
    """A span of an operation, within the current one."""
    if not _tracer:
        yield
        return
    with _tracer.span(name):
        _tracer.mark(session_id, operation_id)
        yield


def carried() -> str:
    """Where the current span stands, to be kept with what is done later; empty without traces."""
    return _tracer.carried() if _tracer else ""


@contextmanager
def within(carried: str) -> Iterator[None]:
    """As if inside the span that was `carried`; where there was none, inside the current one."""
    if not (_tracer and carried):
        yield
        return
    with _tracer.within(carried):
        yield
