"""`python -m benchmarks.shared_core`: what is left of sampling and training when another program keeps a core busy."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from statistics import median_low
from typing import Any

from benchmarks import options
from benchmarks.choices import Work, seconds
from benchmarks.engines import THREADS
from benchmarks.model import bundled_model, license_text
from benchmarks.peers.celerity import Celerity, grpo_request, sample_request
from benchmarks.report import write_report
from benchmarks.workloads import Writer, ragged_lengths

BUSY = "import os, sys\nos.sched_setaffinity(0, {int(sys.argv[1])})\nwhile True: pass"


@contextmanager
def busy_core() -> Iterator[None]:
    """One of the cores of this process has another program on it, which never waits."""
    core = max(os.sched_getaffinity(0))
    program = subprocess.Popen([sys.executable, "-c", BUSY, str(core)])
    try:
        yield
    finally:
        program.kill()
        program.wait()


def works(ours: Celerity, text: list[int], quick: bool) -> dict[str, Work]:
    writer, session = Writer(text), ours.session(0)
    requests = [sample_request(one, seed) for seed, one in enumerate(writer.batch(8, max_tokens=32).requests)]
    batch = grpo_request(writer.training(ragged_lengths(8, total=614 if quick else 1228)).samples)

    def sample(count: int) -> None:
        for future in [ours.engine.sample(session, one) for one in requests[:count]]:
            future.result()

    return {
        "1 sequence": partial(sample, 1),
        "8 sequences": partial(sample, 8),
        "forward-backward": lambda: ours.engine.forward_backward(session, batch, 0).result(),
    }


def measure(works: dict[str, Work], rounds: int) -> list[dict[str, Any]]:
    """Medians; quiet and busy in turn."""
    taken: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            taken[name][0].append(seconds(work))
        with busy_core():
            for name, work in works.items():
                taken[name][1].append(seconds(work))
    medians = {name: (median_low(quiet), median_low(busy)) for name, (quiet, busy) in taken.items()}
    return [{"work": name, "quiet": quiet, "busy": busy} for name, (quiet, busy) in medians.items()]


def main() -> None:
    asked = options.parse(__doc__)
    ours = Celerity(bundled_model(), asked.dtype, "cpu", THREADS)
    rows = measure(works(ours, license_text(bundled_model()), asked.quick), asked.rounds)
    ours.close()
    for row in rows:
        print(
            f"{row['work']:18} quiet {row['quiet']:6.2f} s, busy {row['busy']:6.2f} s: {row['quiet'] / row['busy']:.0%}"
        )
    write_report(f"shared-core-{asked.dtype}", {"rows": rows, **asked.about})


if __name__ == "__main__":
    main()
