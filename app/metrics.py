"""What Prometheus scrapes: read from the store at each scrape, so that any process may answer."""

import time
from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from store.store import Store
from store.workers import Worker

# What the store counts, by its name there: the metric's name, its help and its labels.
COUNTERS = {
    "accepted": ("celerity_operations_accepted", "Operations accepted.", ["kind"]),
    "ended": ("celerity_operations", "Ended operations.", ["kind", "state"]),
    "failed": ("celerity_operations_failed", "Operations that ended FAILED.", ["kind", "code"]),
    "tokens": ("celerity_tokens", "Tokens of completed operations, sampled or trained on.", ["use"]),
    "snapshots": ("celerity_snapshots", "Snapshots of adapters that were kept.", []),
    "refused": ("celerity_refused", "Claims of operations begun already, and ends by who lost the claim.", ["what"]),
}
HISTOGRAMS = {
    "waiting": ("celerity_operation_waiting_seconds", "From an operation's acceptance to its start."),
    "running": ("celerity_operation_running_seconds", "From an operation's last start to its end."),
}
WORKERS: dict[str, tuple[str, Callable[[Worker], float]]] = {
    "heartbeat_age_seconds": ("Since it last said that it is alive.", lambda worker: worker.heartbeat_age),
    "sessions": ("Sessions that it holds.", lambda worker: worker.session_count),
    "session_capacity": ("Most sessions that it may hold.", lambda worker: worker.announcement.capacity),
    "resident_adapters": ("Adapters in its memory.", lambda worker: worker.announcement.resident),
    "adapter_bytes": ("What those take.", lambda worker: worker.announcement.resident_bytes),
    "free_bytes": ("Memory that its device has left.", lambda worker: worker.announcement.free_bytes),
    "decode_utilization": (
        "Part of CELERITY_MAX_BATCH_SEQUENCES that decoded together, on average between its last two heartbeats.",
        lambda worker: worker.announcement.decode_utilization,
    ),
    "training_utilization": (
        "Part of CELERITY_MICRO_BATCH_TOKENS that training passes used, on average between its last two heartbeats.",
        lambda worker: worker.announcement.training_utilization,
    ),
}


class StoreCollector(Collector):
    def __init__(self, store: Store) -> None:
        self._store = store

    def describe(self) -> Iterator[Metric]:
        """Nothing: registering must not ask the store."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        yield self._redis_latency()
        yield self._sessions()
        yield from self._counts()
        yield from self._workers()

    def _redis_latency(self) -> Metric:
        began = time.perf_counter()
        # Not a PING, which a server that cannot write to its disk refuses.
        self._store.now()
        seconds = time.perf_counter() - began
        return GaugeMetricFamily("celerity_redis_ping_seconds", "A round trip to Redis just now.", seconds)

    def _sessions(self) -> Metric:
        family = GaugeMetricFamily("celerity_sessions", "Sessions that are kept.", labels=["status"])
        for status, count in self._store.sessions.count().items():
            family.add_metric([status.value], count)
        return family

    def _counts(self) -> Iterator[Metric]:
        counts = self._store.counters()
        for name, (metric, text, labels) in COUNTERS.items():
            counter = CounterMetricFamily(metric, text, labels=labels)
            for values, count in counts.counter(name).items():
                counter.add_metric(values, count)
            yield counter
        for name, (metric, text) in HISTOGRAMS.items():
            histogram = HistogramMetricFamily(metric, text, labels=["kind"])
            for kind, observed in counts.histogram(name).items():
                buckets = [(floatToGoString(bound), count) for bound, count in observed.buckets]
                histogram.add_metric([kind], buckets, observed.sum)
            yield histogram

    def _workers(self) -> Iterator[Metric]:
        known = self._store.workers.known()
        for name, (text, read) in WORKERS.items():
            family = GaugeMetricFamily(f"celerity_worker_{name}", text, labels=["worker", "device"])
            for worker in known:
                family.add_metric([worker.id, worker.announcement.device], read(worker))
            yield family
