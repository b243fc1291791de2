"""Everything that a trial left is counted, and compared with the undisturbed run."""

from collections import Counter
from pathlib import Path

from settings import Settings
from store.store import Store, open_store
from tests.chaos.client import Run, Told
from tests.chaos.keepsakes import faults as checkpoint_differences
from tests.chaos.keepsakes import kept, left_over
from tests.chaos.report import Report
from tests.chaos.verdict import differences, undisturbed, weights_differ
from workers.engine.config import EngineConfig
from workers.engine.engine import Engine


def judge(settings: Settings, runs: list[Run], faults: Counter[str], model: Path) -> Report:
    """`settings` are those of the stack's workers, which is ready."""
    store, engine = (
        open_store(settings),
        Engine(EngineConfig(device="cpu", kernels=settings.kernels, torch_threads=1, micro_batch_tokens=64)),
    )
    engine.start()
    report = Report(faults=faults)
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
        report.differences += differences(told, expected) + checkpoint_differences(store, model, told, expected)
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
