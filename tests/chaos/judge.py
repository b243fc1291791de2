"""Everything that a trial left is counted, and compared with the undisturbed run."""

from collections import Counter
from contextlib import closing
from pathlib import Path

import msgspec

from domain.operation import OperationKind
from settings import Settings
from store.errors import NotFoundError
from store.objects import Objects, open_objects
from store.store import Store, open_store
from tests.chaos import checkpoints, comparison, expiry, leftovers
from tests.chaos.expected import run_undisturbed
from tests.chaos.report import Report
from tests.chaos.story import SessionRun, Story
from workers.engine.config import EngineConfig
from workers.engine.engine import Engine


def judge(settings: Settings, stories: list[Story], faults: Counter[str], model: Path) -> Report:
    """`settings` are those of the stack's workers, which is ready."""
    report = Report(faults=faults)
    objects = open_objects(settings.objects_url, settings.data_dir)
    with closing(open_store(settings)) as store, closing(started_engine(settings)) as engine:
        for story in stories:
            _count_requests(report, story)
            if story.error is None:
                _compare(report, story, store, objects, engine, model)
        if not report.differences:
            store.janitor.sweep()
            runs = [run for story in stories for run in story.sessions]
            report.differences += checkpoints.left_over(settings, runs)
    if not report.differences:
        _expire(report, settings, stories)
    if not report.differences:
        leftovers.end_all(stories)
        report.differences += leftovers.left_over(settings)
    return report


def started_engine(settings: Settings) -> Engine:
    """As the workers have it, for runs that nothing disturbs."""
    engine = Engine(EngineConfig(device="cpu", kernels=settings.kernels, torch_threads=1, micro_batch_tokens=64))
    engine.start()
    return engine


def _count_requests(report: Report, story: Story) -> None:
    report.retries += story.client.retries
    report.latencies += story.latencies
    report.slowest = max(report.slowest, story.client.slowest)
    for run in story.sessions:
        report.accepted += len(run.ids)
        report.ended += len(run.ends)
        report.lost += len(run.ids) - len(run.ends)
    if story.error is not None:
        report.differences.append(f"{story.name}: {story.error!r}")


def _compare(report: Report, story: Story, store: Store, objects: Objects, engine: Engine, model: Path) -> None:
    origin = None
    for run in story.sessions:
        expected = run_undisturbed(engine, model, run, origin)
        lines = comparison.wrongly_ended(run) + comparison.differences(story.api(run), run, expected)
        lines += checkpoints.differences(store, objects, model, run, expected)
        if not _is_removed(store, run):
            lines += comparison.weights_differ(store, run, expected) + comparison.log_differs(store, run)
            report.doubled += _doubled(store, run, origin.step if origin else 0)
        report.differences += lines
        _count(report, run)
        origin = expected.results[run.plan.origin]


def _is_removed(store: Store, run: SessionRun) -> bool:
    """One that has been stopped, for longer than such sessions are kept."""
    try:
        store.sessions.get(run.session_id)
    except NotFoundError:
        assert run.is_stopped
        return True
    return False


def _doubled(store: Store, run: SessionRun, first_step: int) -> int:
    """Twice accepted (a later place in the order than that of all that were sent), or twice run (more steps than
    completed)."""
    (newest,) = store.operations.list(run.session_id, 1, 0)
    steps = [n for n, end in run.ends.items() if run.accepted[n].kind is OperationKind.OPTIM_STEP and end.data]
    return newest.seq - len(run.ids) + abs(store.sessions.get(run.session_id).step - first_step - len(steps))


def _count(report: Report, run: SessionRun) -> None:
    report.sessions[str(run.plan.dialect)] += 1
    report.sessions["stopped"] += run.is_stopped
    report.without_effect += Counter(str(end.code) for end in run.ends.values() if end.had_no_effect)
    report.too_late += list(run.cancelled.values()).count(False)
    report.refused += run.refused
    report.logged += len(run.logged)
    report.checkpoints += len(checkpoints.kept(run))
    report.deleted += len(checkpoints.saved(run)) - len(checkpoints.kept(run))


def _expire(report: Report, settings: Settings, stories: list[Story]) -> None:
    """All that is stopped, and all that is older than results are kept, goes now."""
    over = msgspec.structs.replace(settings, session_retention=0.0, result_retention=0.0)
    with closing(open_store(over)) as store:
        store.janitor.sweep()
    for story in stories:
        for run in story.sessions:
            lines, expired = expiry.wrong_answers(story.client, story.api(run), run, settings.results_kept)
            report.differences += lines
            report.expired += expired
