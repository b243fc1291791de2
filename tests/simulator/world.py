"""One deployment: a server, API processes, workers that are replaced when they die, and clients."""

from typing import Any, cast

from store.objects import Objects
from store.store import Store
from tests.simulator.api import Api
from tests.simulator.broker import Broker, Consumer
from tests.simulator.client import Client
from tests.simulator.connection import Connection, SimulatedRedis
from tests.simulator.engine import SimulatedEngine
from tests.simulator.faults import Faults, Target
from tests.simulator.objects import Bucket
from tests.simulator.plan import Plan
from tests.simulator.schedule import begin
from tests.simulator.server import Call, Server
from tests.simulator.worker import Worker
from workers.runtime import Runtime

# A worker that died is back after so long.
RESTART_SECONDS = 3.0


class World:
    def __init__(self, plan: Plan, calls: list[Call] | None = None) -> None:
        self.plan = plan
        self.schedule = begin(plan.seed)
        self.server = Server(lambda: self.schedule.now, keeps_a_file=plan.loses_tails, calls=calls)
        self.faults = Faults(self.schedule, self.server, plan.kinds, plan.rate, plan.calm_after, plan.suppressed)
        self.objects: dict[str, bytes] = {}
        self.deaths = 0
        self._host = Target("host")
        self._workers: dict[str, Consumer] = {}
        self.apis = [Api(f"api{number}") for number in range(plan.apis)]
        for api in self.apis:
            api.store = self.open_store(api)
        self.clients = [Client(self.schedule, self.faults, self.apis, program) for program in plan.programs]

    def start(self) -> None:
        for number in range(self.plan.workers):
            self._start_worker(f"w{number}")
        for client in self.clients:
            self.schedule.spawn(client.name, client.run, by=self.apis[0])

    def open_store(self, process: Target) -> Store:
        connection = Connection(self.schedule, self.server, self.faults, process)
        broker = Broker(self.schedule, self.faults, self._workers, self.plan.broker_pace)
        objects = Objects(cast(Any, Bucket(connection, self.objects)))
        return Store(SimulatedRedis(connection), objects, cast(Any, broker), self.plan.settings)

    def open_store_here(self) -> Store:
        """For the process that runs just now."""
        return self.open_store(cast(Target, self.schedule.process))

    def make_engine(self) -> SimulatedEngine:
        return SimulatedEngine(self.faults, self.plan.engine_pace)

    def _start_worker(self, name: str) -> None:
        worker = Worker(name, self.schedule, lambda: self._replace(name))
        with self.schedule.inside(worker):
            runtime = Runtime(self.plan.settings)
            runtime.engine.start()
            self._workers[worker.start(runtime)] = worker

    def _replace(self, name: str) -> None:
        """Under another name: what is meant for one that died must not reach the one after it."""
        self.deaths += 1
        base, _, life = name.partition("l")
        after = f"{base}l{int(life or 1) + 1}"
        self.schedule.spawn(f"{after}.start", lambda: self._start_worker(after), RESTART_SECONDS, by=self._host)
