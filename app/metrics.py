"""What Prometheus scrapes: read from the store at each scrape, so that any process may answer."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from store.store import Store


class StoreCollector(Collector):
    def __init__(self, store: Store) -> None:
        self._store = store

    def describe(self) -> Iterator[Metric]:
        """Nothing: registering must not ask the store."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        counters = self._store.counters()
        sessions = GaugeMetricFamily("celerity_sessions", "Sessions that are kept.", labels=["status"])
        for status, count in counters["sessions"].items():
            sessions.add_metric([str(status)], count)
        yield sessions
        operations = CounterMetricFamily("celerity_operations", "Ended operations.", labels=["kind", "state"])
        for (kind, state), count in counters["operations"].items():
            operations.add_metric([kind, state], count)
        yield operations
