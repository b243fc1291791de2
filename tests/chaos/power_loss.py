"""A trial in which Redis forgets its last writes, again and again.

What is promised then is less (docs/reliability.md, Power loss): operations may be forgotten, but only the last of a
session; those that are not end, once and in order, as if the forgotten ones had never been.
"""

import random
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from domain.session import Dialect
from settings import load_settings
from store.store import Store, open_store
from testing.tiny_model import make_tiny_model
from tests.chaos import comparison
from tests.chaos.deployment import deployed
from tests.chaos.expected import run_undisturbed
from tests.chaos.faults.lost_writes import RecentWrites
from tests.chaos.judge import started_engine
from tests.chaos.native_api import NativeApi
from tests.chaos.plan import SESSION_LENGTH, Operation, SessionPlan, plan
from tests.chaos.report import Report
from tests.chaos.retrying_client import GIVE_UP_SECONDS, RetryingClient, checked
from tests.chaos.story import SessionRun

SESSIONS = 4
BURST = 8
LONGEST_PAUSE = 1.0


def power_loss_trial(seed: int, losses: int, folder: Path) -> Report:
    """Of four sessions, with eight operations of each before each of the `losses`."""
    model, rng = make_tiny_model(folder / "models" / "tiny"), random.Random(seed)
    with deployed(folder) as deployment:
        settings = load_settings(deployment.processes["worker-1"].service.environment)
        with closing(open_store(settings)) as store, closing(started_engine(settings)) as engine:
            sessions = [Session(deployment.url, store, rng, f"session-{number}") for number in range(SESSIONS)]
            report = Report()
            for _ in range(losses):
                writes = RecentWrites(deployment)
                for session in sessions:
                    report.latencies += session.send(BURST)
                time.sleep(rng.uniform(0, LONGEST_PAUSE))
                writes.lose_tail(rng)
                report.faults["lose_tail"] += 1
                for session in sessions:
                    session.settle(report)
            for session in sessions:
                expected = run_undisturbed(engine, model, session.run, None)
                report.differences += comparison.differences(session.api, session.run, expected)
                report.differences += comparison.weights_differ(store, session.run, expected)
                # There is none if all were forgotten.
                newest = max((found.seq for found in store.operations.list(session.run.session_id, 1, 0)), default=0)
                report.doubled += newest - len(session.run.ids)
    report.sessions["native"] = SESSIONS
    return report


class Session:
    """`run` is as if what has been forgotten had never been asked for."""

    def __init__(self, url: str, store: Store, rng: random.Random, name: str) -> None:
        self._client = RetryingClient(url)
        self.api = NativeApi(self._client)
        id = self.api.create_session(f"{name}-create", 0, None)
        self.run = SessionRun(name, SessionPlan(Dialect.NATIVE, [], 0, frozenset()), id, store.sessions.get(id).spec)
        self._planned = _operations(rng)
        self._sent = 0

    def send(self, count: int) -> list[float]:
        """The seconds that it took to have each accepted."""
        latencies = []
        for operation in (next(self._planned) for _ in range(count)):
            began = time.monotonic()
            self._sent += 1
            answer = checked(self.api.send(self.run.session_id, operation, f"{self.run.name}-{self._sent}"))
            latencies.append(time.monotonic() - began)
            self.run.plan.operations.append(operation)
            self.run.ids.append(self.api.operation_id(answer))
        return latencies

    def settle(self, report: Report) -> None:
        """Reads how all that was sent since the last time has ended, and drops what has been forgotten of it."""
        operations, ids, first = self.run.plan.operations, self.run.ids, max(self.run.ends, default=-1) + 1
        kept = [self._is_kept(operations[number], ids[number]) for number in range(first, len(ids))]
        remembered = first + sum(kept)
        if not all(kept[: sum(kept)]):
            report.differences.append(f"{self.run.name}: operations were forgotten, and not those after them: {kept}")
        report.accepted += len(kept)
        report.forgotten += len(kept) - sum(kept)
        del operations[remembered:], ids[remembered:]
        for number in range(first, remembered):
            self._wait_for(number, report)

    def _is_kept(self, operation: Operation, id: str) -> bool:
        path = self.api.operation_path(self.run.session_id, operation.kind, id)
        return self._client.try_get(path).status_code != 404

    def _wait_for(self, number: int, report: Report) -> None:
        operation, id = self.run.plan.operations[number], self.run.ids[number]
        end, give_up_at = None, time.monotonic() + GIVE_UP_SECONDS
        while end is None:
            assert time.monotonic() < give_up_at, f"{self.run.name} operation {number} ({operation.kind}) stands still"
            end = self.api.end(self.run.session_id, operation, id)
        self.run.ends[number] = end
        report.ended += 1


def _operations(rng: random.Random) -> Iterator[Operation]:
    """Without end."""
    while True:
        for session in plan(rng.randrange(1 << 32), 2 * SESSION_LENGTH):
            if session.dialect is Dialect.NATIVE:
                yield from session.operations
