"""A stack of processes: started in order, ready together, stopped in the opposite order."""

import json
import os
import signal
import time
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

import redis

from stack import services
from stack.exposure import close_files, forget_if_exposed
from stack.lock import DataFolderLock
from stack.log import Log
from stack.plan import Plan
from stack.process import Process, Service
from stack.unix_socket import UnixSocket
from store.private_files import FILE, VALKEY

POLL_SECONDS = 0.1
READY_SECONDS = 180.0
# The API is on this host, where no proxy of the environment leads.
DIRECT = build_opener(ProxyHandler({}))


class StackError(RuntimeError):
    """A process of the stack ended, or did not get ready, when nobody asked for that."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class Stack:
    """Valkey, workers and the API. `start` and `stop` belong to a thread that outlives the stack."""

    def __init__(self, plan: Plan, log: Log) -> None:
        self.plan = plan
        self.processes: dict[str, Process] = {}
        self._log = log
        self._lock: DataFolderLock | None = None
        self._socket: UnixSocket | None = None

    @property
    def url(self) -> str:
        return self.plan.url

    def start(self) -> None:
        """Start everything but wait only for Valkey, without which the others could not start.

        Raises:
            ValueError: another stack runs in the data folder, or it cannot be used.
            StackError: Valkey ended or gave no answer.
        """
        plan, data_dir = self.plan, self.plan.settings.data_dir.resolve()
        self._lock = DataFolderLock(data_dir, f"{self.url}, pid {os.getpid()}")
        close_files(data_dir, self._log)
        if plan.embeds_valkey:
            plan = self._start_valkey(self._lock)
        for number in range(1, plan.workers + 1):
            self.run(services.worker(plan, number))
        self.run(services.api(plan))

    def run(self, service: Service) -> None:
        """Start a service, or start it again after its end."""
        self.processes[service.name] = Process(service, self._log)
        self._log.write("stack", f"{service.name} started, pid {self.processes[service.name].pid}")

    def is_ready(self) -> bool:
        """Whether a session could be created and run.

        Raises:
            StackError: a process has ended.
        """
        return self._why_not_ready() is None

    def wait_ready(self, seconds: float = READY_SECONDS) -> None:
        """Raises StackError when it takes longer than that, or a process ends."""
        deadline = time.monotonic() + seconds
        while (reason := self._why_not_ready()) is not None:
            _give_up_after(deadline, "the stack", f": {reason}")
            time.sleep(POLL_SECONDS)

    def check(self) -> None:
        """Raises StackError when a process has ended."""
        for name, process in self.processes.items():
            code = process.poll()
            if code is not None:
                raise StackError(f"{name} ended unexpectedly with exit code {code}", code or 1)

    def stop(self) -> None:
        """The API first, then the workers, which finish what they run, and last Valkey, which keeps it."""
        for process in reversed(self.processes.values()):
            process.stop()
            self._log.write("stack", f"{process.service.name} ended, exit code {process.poll()}")
        self.processes.clear()
        if self._lock is not None:
            self.plan.settings.embedded_url_file.unlink(missing_ok=True)
            self._lock.release()
            self._lock = None
        if self._socket is not None:
            self._socket.remove()
            self._socket = None

    def stop_now(self) -> None:
        """Without waiting for what runs: Valkey keeps what was accepted, and a later stack goes on with it."""
        for name, process in self.processes.items():
            if name != VALKEY:
                process.signal_group(signal.SIGKILL)
        self.stop()

    def hasten(self) -> None:
        """Kill every process, so that a `stop` under way need not wait; for signal handlers."""
        for process in self.processes.values():
            process.signal_group(signal.SIGKILL)

    def _why_not_ready(self) -> str | None:
        """Why no session could be created and run. Raises StackError when a process has ended."""
        self.check()
        try:
            return _refusal(f"{self.url}/readyz")
        except (OSError, HTTPException) as error:  # refused, or cut short
            return f"the API does not answer ({error})"

    def _start_valkey(self, lock: DataFolderLock) -> Plan:
        """The plan with the address of the server that now runs."""
        data_dir = self.plan.settings.data_dir.resolve()
        self._socket = UnixSocket(data_dir / VALKEY)
        self.run(services.valkey(self.plan, self._socket.path, lock.fd))
        client = redis.Redis(unix_socket_path=str(self._socket.path))
        deadline = time.monotonic() + READY_SECONDS
        while not _answers(client):
            self.check()
            _give_up_after(deadline, "valkey")
            time.sleep(POLL_SECONDS)
        forget_if_exposed(data_dir, client, self._log)
        client.close()
        self.plan.settings.embedded_url_file.touch(FILE)
        self.plan.settings.embedded_url_file.write_text(self._socket.url)
        return self.plan.with_redis(self._socket.url)


def _answers(client: redis.Redis) -> bool:
    try:
        # Not a PING, which a server that cannot write to its disk refuses.
        return int(client.dbsize()) >= 0
    except (redis.ConnectionError, redis.TimeoutError):  # not up yet, or still reading its log
        return False


def _refusal(url: str) -> str | None:
    """The API's words, None when it does not refuse. Raises OSError or HTTPException when there is no whole answer."""
    try:
        with DIRECT.open(url, timeout=5):
            return None
    except HTTPError as error:
        with error:
            body = error.read()
    try:
        return str(json.loads(body)["message"])
    except (ValueError, KeyError):  # it is not this API
        return body.decode("utf-8", "replace")


def _give_up_after(deadline: float, what: str, why: str = "") -> None:
    if time.monotonic() > deadline:
        raise StackError(f"{what} did not get ready in time{why}")
