"""Everything that may happen to a stack, at random from a seed."""

import os
import random
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import redis

from stack.stack import Stack


class Saboteur:
    """`strikes` blows, a random pause apart; what is killed is started again at once.

    It strikes in the caller's thread, since a process that it starts ends with the thread that started it.
    """

    def __init__(
        self, stack: Stack, seed: int, strikes: int, pause: tuple[float, float], stall: float, freeze: float
    ) -> None:
        """`stall` is for how many seconds a worker is stopped, `freeze` for how many Valkey is, once, half way."""
        self.struck: Counter[str] = Counter()
        self._stack, self._strikes, self._pause, self._stall, self._freeze = stack, strikes, pause, stall, freeze
        self._rng = random.Random(seed)
        self._progress = threading.Condition()
        blows = {self.kill_worker: 8, self.kill_api: 3, self.kill_api_process: 3, self.kill_valkey: 3}
        blows |= {self.stall_worker: 3, self.cut_connections: 3, self.lose_messages: 3, self.repeat_messages: 2}
        self._blows = [blow for blow, weight in blows.items() for _ in range(weight)]

    @property
    def count(self) -> int:
        return sum(self.struck.values())

    def wait_for(self, count: int) -> None:
        """Blocks until so many blows have been struck, or all."""
        with self._progress:
            self._progress.wait_for(lambda: self.count >= min(count, self._strikes))

    def strike(self) -> None:
        for number in range(self._strikes):
            time.sleep(self._rng.uniform(*self._pause))
            blow = self._rng.choice(self._blows)
            if self._freeze and number == self._strikes // 2:
                blow = self.freeze_valkey
            blow()
            with self._progress:
                self.struck[blow.__name__] += 1
                self._progress.notify_all()

    def kill_worker(self) -> None:
        self._replace(self._a_worker())

    def kill_api(self) -> None:
        self._replace("api")

    def kill_api_process(self) -> None:
        """One of gunicorn's; its master starts another."""
        master = self._stack.processes["api"].pid
        with Path(f"/proc/{master}/task/{master}/children").open() as children:
            pids = [int(pid) for pid in children.read().split()]
        if pids:
            _signal(self._rng.choice(pids), signal.SIGKILL)

    def kill_valkey(self) -> None:
        self._replace("valkey")

    def stall_worker(self) -> None:
        """Longer than its heartbeat may be missed: it wakes as a zombie."""
        self._stop_for(self._a_worker(), self._stall)

    def freeze_valkey(self) -> None:
        """Every connection is there and none gives an answer, for longer than anyone waits for one."""
        self._stop_for("valkey", self._freeze)

    def cut_connections(self) -> None:
        self._on_server(lambda server: server.client_kill_filter(_type="normal", skipme=True))

    def lose_messages(self) -> None:
        """Whatever waits in the workers' queues is gone."""
        self._on_server(lambda server: [server.delete(queue) for queue in server.scan_iter("*-*", _type="list")])

    def repeat_messages(self) -> None:
        """Whatever waits in the workers' queues is there twice."""

        def repeat(server: redis.Redis) -> None:
            for queue in server.scan_iter("*-*", _type="list"):
                messages = server.lrange(queue, 0, -1)
                if messages:
                    server.rpush(queue, *messages)

        self._on_server(repeat)

    def _on_server(self, action) -> None:  # type: ignore[no-untyped-def]
        url = self._stack.processes["worker-1"].service.environment["CELERITY_REDIS_URL"]
        with redis.Redis.from_url(url, socket_timeout=5.0) as server:
            try:
                action(server)
            except redis.ConnectionError:
                return  # it is being started again

    def _stop_for(self, name: str, seconds: float) -> None:
        pid = self._stack.processes[name].pid
        _signal(pid, signal.SIGSTOP)
        time.sleep(seconds)
        _signal(pid, signal.SIGCONT)

    def _replace(self, name: str) -> None:
        process = self._stack.processes[name]
        process.kill()
        self._stack.run(process.service)

    def _a_worker(self) -> str:
        return self._rng.choice([name for name in self._stack.processes if name.startswith("worker")])


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
