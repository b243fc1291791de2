"""A worker process: the product's runtime, heartbeat and tasks over a simulated store and engine."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress

from celery.app.trace import build_tracer
from greenlet import GreenletExit

from domain.operation import OperationKind
from store.errors import Unavailable
from tests.simulator.faults import Target
from tests.simulator.schedule import Schedule
from tests.simulator.threads import Event
from workers import process
from workers.celery_app import app
from workers.heartbeat import Heartbeat
from workers.runtime import Runtime

app.loader.import_default_modules()
# As a worker of Celery's runs its tasks, which it prepares once.
TRACERS = {
    kind: build_tracer(kind.task_name, app.tasks[kind.task_name], app=app, hostname="host") for kind in OperationKind
}


class Worker(Target):
    """`replace` puts another in its place, once it is gone."""

    exposure = 3.0

    def __init__(self, name: str, schedule: Schedule, replace: Callable[[], None]) -> None:
        super().__init__(name)
        self._schedule, self._replace = schedule, replace
        self._messages: Counter[str] = Counter()
        self._running = 0
        self._is_ending = False
        self._is_idle = Event()
        self._runtime: Runtime | None = None

    def start(self, runtime: Runtime) -> str:
        """Its id."""
        self._runtime = runtime
        self._heartbeat = Heartbeat(runtime)
        self._heartbeat.start()
        return runtime.worker_id

    def resume(self) -> None:
        process._runtime = self._runtime

    def deliver(self, kind: OperationKind, operation_id: str, after: float) -> None:
        self._messages[operation_id] += 1
        name = f"{self.name}.{operation_id}x{self._messages[operation_id]}"
        self._schedule.spawn(name, lambda: self._run(kind, operation_id), after, by=self)

    def _run(self, kind: OperationKind, operation_id: str) -> None:
        if self._is_ending:
            return
        self._running += 1
        TRACERS[kind](operation_id, (), {}, {"id": operation_id, "delivery_info": {}})
        self._running -= 1
        if not self._running:
            self._is_idle.set()

    def kill(self) -> None:
        self.is_dead = True
        self._replace()
        raise GreenletExit

    def drain(self) -> None:
        """As workers/celery_app.py does it when Celery has been asked to end."""
        if not self._is_ending:
            self._is_ending = True
            self._schedule.spawn(f"{self.name}.drain", self._drain)
            self._schedule.spawn(f"{self.name}.leave", self._leave)

    def _drain(self) -> None:
        assert self._runtime
        self._heartbeat.stop()
        # What is raised here ends this thread, and nothing else.
        with suppress(*Unavailable):
            self._runtime.drain()

    def _leave(self) -> None:
        assert self._runtime
        while self._running:
            self._is_idle.clear()
            self._is_idle.wait()
        self._heartbeat.stop()
        # Celery logs what its signals raise, and goes on to its end.
        with suppress(*Unavailable):
            self._runtime.close()
        self.kill()
