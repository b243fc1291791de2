"""One trial: stories run while faults are injected; then everything is counted and compared."""

import random
from functools import partial
from pathlib import Path

from settings import load_settings
from tests.chaos.client import Run
from tests.chaos.deployment import deployed
from tests.chaos.faults.injector import Injector
from tests.chaos.judge import judge
from tests.chaos.plan import plan
from tests.chaos.report import Report
from tests.tiny_model import make_tiny_model

STORIES = 4


def trial(seed: int, operations: int, faults: int, folder: Path) -> Report:
    """`operations` over four stories, spread evenly over so many `faults`."""
    model = make_tiny_model(folder / "models" / "tiny")
    rng = random.Random(seed)
    per_story = operations // STORIES
    with deployed(folder) as deployment:
        injector = Injector(deployment, rng.randrange(1 << 32), faults)
        may_send = partial(_gate, injector, faults, per_story)
        plans = [plan(rng.randrange(1 << 32), per_story) for _ in range(STORIES)]
        runs = [Run(deployment.url, f"story-{number}", chapters, may_send) for number, chapters in enumerate(plans)]
        for run in runs:
            run.start()
        injector.inject_all()
        for run in runs:
            run.join()
        deployment.wait_ready()
        settings = load_settings(deployment.processes["worker-1"].service.environment)
        report = judge(settings, runs, injector.counts, model)
        report.idle = injector.idle
        return report


def _gate(injector: Injector, faults: int, per_story: int, number: int) -> None:
    injector.wait_for(faults * number // per_story)
