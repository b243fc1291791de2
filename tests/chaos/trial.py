"""One trial: stories run while a saboteur strikes; then everything is counted and compared."""

import random
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import msgspec

from settings import load_settings
from stack.running import running_stack
from stack.stack import Stack
from store.store import Store, open_store
from tests.chaos.client import Outlasted, Run, Told
from tests.chaos.keepsakes import faults, kept, left_over
from tests.chaos.plan import plan
from tests.chaos.saboteur import Saboteur
from tests.chaos.verdict import differences, undisturbed, weights_differ
from tests.tiny_model import make_tiny_model
from workers.engine.config import EngineConfig
from workers.engine.engine import Engine

STORIES = 4
SETTINGS = {
    "CELERITY_DEVICE": "cpu",
    "CELERITY_TORCH_THREADS": "1",
    "CELERITY_MICRO_BATCH_TOKENS": "64",
    "CELERITY_HEARTBEAT_INTERVAL": "0.3",
    "CELERITY_HEARTBEAT_TIMEOUT": "2.5",
    "CELERITY_REDISPATCH_AFTER": "1",
    "CELERITY_SNAPSHOT_STEPS": "3",
}
STALL_SECONDS = 4.0
# Random kills may hit one operation often; only one that always kills its worker should end for that.
MOST_ATTEMPTS = "50"


@dataclass
class Report:
    accepted: int = 0
    ended: int = 0
    lost: int = 0
    doubled: int = 0
    retries: int = 0
    sessions: int = 0
    checkpoints: int = 0
    deleted: int = 0
    differences: list[str] = field(default_factory=list)
    struck: Counter[str] = field(default_factory=Counter)
    latencies: list[float] = field(default_factory=list)
    slowest: Outlasted = field(default_factory=Outlasted)

    @property
    def is_clean(self) -> bool:
        return self.accepted > 0 and not (self.lost or self.doubled or self.differences)

    def __str__(self) -> str:
        times = sorted(self.latencies)
        at = {share: 1000 * times[int(share * (len(times) - 1))] for share in (0.5, 0.9, 0.99, 1.0)}
        lines = [
            f"accepted {self.accepted}, ended {self.ended}, lost {self.lost}, doubled {self.doubled}",
            f"{self.sessions} sessions, {self.checkpoints} checkpoints kept, {self.deleted} deleted",
            f"differences from the undisturbed run: {len(self.differences)}",
            f"struck {sum(self.struck.values())}: {dict(self.struck)}; requests repeated {self.retries}",
            "accepting an operation, ms: " + ", ".join(f"p{100 * share:.0f} {ms:.0f}" for share, ms in at.items()),
            f"the slowest request: {self.slowest}",
        ]
        return "\n".join(lines + self.differences[:10])


def trial(seed: int, operations: int, strikes: int, folder: Path, freeze: float = 0.0) -> Report:
    """`operations` over four stories while `strikes` blows fall, spread evenly; the middle one holds Valkey still
    for `freeze` seconds, if it is any."""
    model = make_tiny_model(folder / "models" / "tiny")
    rng = random.Random(seed)
    per_story = operations // STORIES
    settings = {**SETTINGS, "CELERITY_MOST_ATTEMPTS": MOST_ATTEMPTS}
    with running_stack(folder / "data", folder / "models", settings, workers=2) as stack:
        saboteur = Saboteur(stack, rng.randrange(1 << 32), strikes, (0.5, 2.5), STALL_SECONDS, freeze)
        may_send = partial(_gate, saboteur, strikes, per_story)
        plans = [plan(rng.randrange(1 << 32), per_story) for _ in range(STORIES)]
        runs = [Run(stack.url, f"story-{number}", chapters, may_send) for number, chapters in enumerate(plans)]
        for run in runs:
            run.start()
        saboteur.strike()
        for run in runs:
            run.join()
        return _judge(stack, runs, saboteur, model)


def _gate(saboteur: Saboteur, strikes: int, per_story: int, number: int) -> None:
    saboteur.wait_for(strikes * number // per_story)


def _judge(stack: Stack, runs: list[Run], saboteur: Saboteur, model: Path) -> Report:
    stack.wait_ready()
    worker = stack.processes["worker-1"].service
    settings = msgspec.structs.replace(load_settings(worker.environment), inline_bytes=1 << 20)
    store, engine = (
        open_store(settings),
        Engine(EngineConfig(device="cpu", kernels=settings.kernels, torch_threads=1, micro_batch_tokens=64)),
    )
    engine.start()
    report = Report(struck=saboteur.struck)
    for run in runs:
        report.retries += run.client.retries
        report.latencies += run.latencies
        report.slowest = max(report.slowest, run.client.slowest)
        if run.error is not None:
            report.differences.append(f"{run.name}: {run.error}")
        else:
            _compare(report, run, store, engine, model)
    if not report.differences:
        report.differences += left_over(store, [told for run in runs for told in run.told])
    engine.close()
    store.close()
    return report


def _compare(report: Report, run: Run, store: Store, engine: Engine, model: Path) -> None:
    origin = None
    for told in run.told:
        expected = undisturbed(engine, model, store.sessions.get(told.session_id).spec, told, origin)
        _count(report, told, store, origin.step if origin else 0)
        report.differences += differences(told, expected) + faults(store, model, told, expected)
        if weights_differ(store.snapshots.load(told.session_id).snapshot, expected):
            report.differences.append(f"{told.name}: the last snapshot differs from the undisturbed weights")
        origin = expected.ends[told.chapter.origin]


def _count(report: Report, told: Told, store: Store, first_step: int) -> None:
    report.sessions += 1
    report.checkpoints += len(kept(told))
    report.deleted += len(told.chapter.doomed)
    report.accepted += len(told.ids)
    ended = [end for end in told.ends if end["status"].endswith(("COMPLETED", "FAILED"))]
    report.ended += len(ended)
    report.lost += len(told.ids) - len(ended)
    # Twice accepted (more operations than were sent), or twice run (more steps than completed).
    listed = len(store.operations.list(told.session_id, 1_000_000, 0))
    steps = first_step + sum(end["status"].endswith("COMPLETED") and "step" in end["data"] for end in ended)
    report.doubled += listed - len(set(told.ids)) + abs(store.sessions.get(told.session_id).step - steps)
