"""One trial: stories run while faults are injected; then everything is counted and compared."""

import random
import time
from collections.abc import Iterable
from contextlib import closing
from functools import partial
from pathlib import Path

from domain.session import SessionSpec
from settings import load_settings
from store.errors import Unavailable
from store.store import Store, open_store
from testing.tiny_model import make_tiny_model
from tests.chaos.deployment import deployed
from tests.chaos.faults.injector import Injector
from tests.chaos.faults.table import WEIGHTS, Fault
from tests.chaos.judge import judge
from tests.chaos.plan import SessionPlan, plan
from tests.chaos.report import Report
from tests.chaos.retrying_client import PAUSE_SECONDS
from tests.chaos.story import Story

STORIES = 8


def trial(
    seed: int, operations: int, faults: int, folder: Path, *, in_bucket: bool = False, kinds: Iterable[Fault] = WEIGHTS
) -> Report:
    """`operations` over eight stories, spread evenly over so many `faults` of these `kinds`; objects are on a disk or
    `in_bucket`."""
    model = make_tiny_model(folder / "models" / "tiny")
    rng = random.Random(seed)
    per_story = operations // STORIES
    with deployed(folder, in_bucket=in_bucket) as deployment:
        injector = Injector(deployment, rng.randrange(1 << 32), faults, kinds)
        plans = [plan(rng.randrange(1 << 32), per_story) for _ in range(STORIES)]
        settings = load_settings(deployment.processes["worker-1"].service.environment)
        with closing(open_store(settings)) as store:
            spec_of = partial(_spec, store)
            stories = [
                Story(deployment.url, f"story-{number}", sessions, partial(_gate, injector, faults, sessions), spec_of)
                for number, sessions in enumerate(plans)
            ]
            for story in stories:
                story.start()
            injector.inject_all()
            for story in stories:
                story.join()
        deployment.wait_ready()
        report = judge(settings, stories, injector.counts, model)
        report.stuck = len(injector.stuck)
        report.idle, report.not_tried = injector.idle, injector.not_tried
        return report


def _gate(injector: Injector, faults: int, sessions: list[SessionPlan], number: int) -> None:
    injector.wait_for(faults * number // sum(len(session.operations) for session in sessions))


def _spec(store: Store, session_id: str) -> SessionSpec:
    """As soon as the store answers."""
    while True:
        try:
            return store.sessions.get(session_id).spec
        except Unavailable:
            time.sleep(PAUSE_SECONDS)
