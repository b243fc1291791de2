"""OpenTelemetry, set up: the stock instrumentations of Celery and Redis, and the exporter of the OTEL_ variables."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

import msgspec
from opentelemetry import context, propagate, trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.celery import CeleryInstrumentor
from opentelemetry.instrumentation.redis import RedisInstrumentor
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult
from opentelemetry.trace import Link, SpanKind, TraceState
from opentelemetry.util.types import Attributes

SERVICE = "service.name"
SESSION, OPERATION = "celerity.session_id", "celerity.operation_id"


class OfRequests(Sampler):
    """Leaves out what a process asks of Redis on its own account, like a heartbeat each second."""

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler

    def should_sample(
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: Attributes = None,
        links: Sequence[Link] | None = None,
        trace_state: TraceState | None = None,
    ) -> SamplingResult:
        is_root = not trace.get_current_span(parent_context).get_span_context().is_valid
        if is_root and kind is SpanKind.CLIENT:
            return SamplingResult(Decision.DROP)
        return self._sampler.should_sample(parent_context, trace_id, name, kind, attributes, links, trace_state)

    def get_description(self) -> str:
        return f"OfRequests({self._sampler.get_description()})"


class OperationTracer:
    def __init__(self, service: str) -> None:
        provider = TracerProvider(resource=Resource.create({SERVICE: service}).merge(OTELResourceDetector().detect()))
        provider.sampler = OfRequests(provider.sampler)
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        trace.set_tracer_provider(provider)
        CeleryInstrumentor().instrument()
        RedisInstrumentor().instrument()
        self._tracer = trace.get_tracer("celerity")

    def mark(self, session_id: str, operation_id: str) -> None:
        trace.get_current_span().set_attributes({SESSION: session_id, OPERATION: operation_id})

    def span(self, name: str) -> AbstractContextManager[trace.Span]:
        return self._tracer.start_as_current_span(name)

    def carried(self) -> str:
        carrier: dict[str, str] = {}
        propagate.inject(carrier)
        return msgspec.json.encode(carrier).decode()

    @contextmanager
    def within(self, carried: str) -> Iterator[None]:
        token = context.attach(propagate.extract(msgspec.json.decode(carried, type=dict[str, str])))
        try:
            yield
        finally:
            context.detach(token)
