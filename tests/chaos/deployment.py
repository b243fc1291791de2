"""What a trial runs against: a stack with two workers, quick to notice what is lost, on a primary and its replica.

Workers and the API reach the primary through a proxy each, so that one can be cut off alone, and have clocks of their
own. Each server has a disk of its own, and so have objects that are in no bucket, where file systems can be mounted.
"""

import dataclasses
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from stack.log import Log
from stack.plan import Plan
from stack.process import Service
from stack.running import private_plan
from stack.stack import Stack
from store.private_files import OBJECTS, STACK_LOG, make_folder
from tests.chaos.clocks import Clocks
from tests.chaos.disk import Disks, mounted
from tests.chaos.object_store import BucketProxy, bucket_behind_proxy
from tests.chaos.servers import Servers
from tests.tcp_proxy import TcpProxy

SETTINGS = {
    "CELERITY_DEVICE": "cpu",
    "CELERITY_TORCH_THREADS": "1",
    "CELERITY_MICRO_BATCH_TOKENS": "64",
    "CELERITY_HEARTBEAT_INTERVAL": "0.3",
    "CELERITY_HEARTBEAT_TIMEOUT": "2.5",
    "CELERITY_BROKER_CHECK_INTERVAL": "1",
    "CELERITY_REDISPATCH_AFTER": "1",
    "CELERITY_SNAPSHOT_STEPS": "3",
    # Fewer adapters in memory than sessions that are busy, so that they are parked and come back all the time.
    "CELERITY_RESIDENT_SESSIONS": "2",
    # About half of the requests and of the results are objects.
    "CELERITY_INLINE_BYTES": "1000",
    # Results expire while their session goes on, and sessions that were stopped while the trial does.
    "CELERITY_RESULTS_KEPT": "50",
    "CELERITY_RESULT_RETENTION": "1",
    "CELERITY_SESSION_RETENTION": "240",
    # Random kills may hit one operation often; only one that always kills its worker should end for that.
    "CELERITY_MOST_ATTEMPTS": "50",
}
WORKERS = ("worker-1", "worker-2")
CLIENTS = (*WORKERS, "api")


class Deployment(Stack):
    def __init__(self, plan: Plan, log: Log, servers: Servers, disks: Disks, bucket: BucketProxy | None) -> None:
        super().__init__(plan.with_redis(servers.primary.url), log)
        self.servers, self.disks, self.bucket = servers, disks, bucket
        self.proxies = {name: TcpProxy(servers.primary.url) for name in CLIENTS}
        self.clocks = Clocks(plan.settings.data_dir, CLIENTS)

    def start(self) -> None:
        for server in (self.servers.primary, self.servers.replica):
            super().run(server.service(self.plan))
        self.servers.replicate()
        super().start()

    def run(self, service: Service) -> None:
        if service.name in self.proxies:
            own = {"CELERITY_REDIS_URL": self.proxies[service.name].url, **self.clocks.environment(service.name)}
            service = dataclasses.replace(service, environment={**service.environment, **own})
        super().run(service)

    def stop(self) -> None:
        super().stop()
        for proxy in self.proxies.values():
            proxy.cut()

    def kill(self, name: str) -> None:
        """And start it again."""
        process = self.processes[name]
        process.kill()
        self.run(process.service)
        if name == self.servers.replica.name:
            self.servers.replicate()

    def replace(self, name: str) -> None:
        """Ask it to end, and start it again."""
        process = self.processes[name]
        process.stop()
        self.run(process.service)

    def fail_over(self) -> None:
        self.servers.fail_over()
        for proxy in self.proxies.values():
            proxy.lead_to(self.servers.primary.url)


@contextmanager
def deployed(folder: Path, *, in_bucket: bool = False) -> Iterator[Deployment]:
    """Ready, on the models of `folder`/models; its objects on a disk or `in_bucket`."""
    data, servers = folder / "data", Servers(folder)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CELERITY_")}
    environment |= {**SETTINGS, "DATA_DIR": str(data), "CELERITY_MODELS_DIR": str(folder / "models")}
    make_folder(data)
    with ExitStack() as stack:
        bucket = None
        if in_bucket:
            leading_to_it, bucket = stack.enter_context(bucket_behind_proxy())
            environment |= leading_to_it
        disks = stack.enter_context(mounted([data / OBJECTS, *servers.folders]))
        log = Log(stack.enter_context((data / STACK_LOG).open("w")))
        deployment = Deployment(private_plan(environment, workers=len(WORKERS)), log, servers, disks, bucket)
        stack.callback(deployment.stop)
        stack.callback(deployment.hasten)
        deployment.start()
        deployment.wait_ready()
        yield deployment
