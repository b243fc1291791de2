"""The broker: a message is delivered to its worker once, twice, late, or not at all."""

from typing import Protocol

from domain.operation import OperationKind
from store.dispatch import Released
from tests.simulator.faults import Fault, Faults
from tests.simulator.schedule import Schedule

SLOWEST_SECONDS = 60.0
# There are far fewer messages than calls.
OFTEN = 5.0


class Consumer(Protocol):
    def deliver(self, kind: OperationKind, operation_id: str, after: float) -> None: ...


class Broker:
    """Where the product has its dispatcher."""

    def __init__(self, schedule: Schedule, faults: Faults, workers: dict[str, Consumer], pace: float) -> None:
        self._schedule, self._faults, self._workers, self._pace = schedule, faults, workers, pace

    def publish(self, released: list[Released]) -> None:
        for message in released:
            self._send(message)

    def forget(self, worker_id: str) -> None:
        """Nothing is kept for anybody."""

    def check(self) -> None:
        """It is there."""

    def send_probe(self, worker_id: str, probe_id: str) -> None:
        """Workers are not probed here."""

    def _send(self, message: Released) -> None:
        coroutine, worker = self._schedule.coroutine, self._workers.get(message.worker_id)
        if coroutine is None or worker is None:
            return
        delays = [self._pace * coroutine.latency()]
        if self._faults.happens(coroutine, Fault.LOST_MESSAGE, often=OFTEN):
            return
        if self._faults.happens(coroutine, Fault.REPEATED_MESSAGE, often=OFTEN):
            delays.append(coroutine.latency() * 10)
        if self._faults.happens(coroutine, Fault.LATE_MESSAGE, often=OFTEN):
            delays[0] = SLOWEST_SECONDS * coroutine.random() ** 2
        for delay in delays:
            worker.deliver(message.kind, message.operation_id, delay)
