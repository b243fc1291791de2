"""What somebody who watches costs a run: `python -m benchmarks.watching`.

Rounds of the example's loop (samples, a forward-backward, an optim-step) on the bundled model, alternately with and
without a session's page, which asks for itself and for its curves every two seconds, as app/console/static/ does.
Wall time of the rounds, and CPU time of the API's processes per look, which other work on the machine disturbs less.
What the browser itself takes to draw is not in it: it is seldom on the server's host.
"""

import argparse
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import httpx2
import psutil

from benchmarks.report import quantile, write_report
from celerity_client import Client, Session, grpo_example, results
from models import bundled
from stack.running import running_stack

PROMPTS = [[504, 2365, 28, 216 + place] * 8 for place in range(4)]
SAMPLES, MAX_TOKENS = 4, 12
PAUSE_SECONDS = 2.0


def round_of(session: Session) -> float:
    """Seconds of one step of the loop, the same work each time: the weights hardly move."""
    began = time.perf_counter()
    asked = [session.sample(prompt, SAMPLES, max_tokens=MAX_TOKENS, seed=1) for prompt in PROMPTS]
    batch = [
        grpo_example(prompt, sequence.tokens, sequence.logprobs, 0.5)
        for prompt, sampled in zip(PROMPTS, results(asked), strict=True)
        for sequence in sampled.sequences
    ]
    trained, stepped = session.grpo(batch), session.optim_step(1e-9)
    trained.result()
    step = stepped.result().step
    session.log("reward", step, 0.5)
    return time.perf_counter() - began


class Page:
    """A session's page in a tab that somebody sees."""

    def __init__(self, url: str, session_id: str) -> None:
        self._http, self._path = httpx2.Client(base_url=url), f"/console/sessions/{session_id}"
        self._newest = {"measured": "", "logged": ""}
        self.looks = 0

    @contextmanager
    def open(self) -> Iterator[None]:
        closed = threading.Event()

        def live() -> None:
            self.look()
            while not closed.wait(PAUSE_SECONDS):
                self.look()

        thread = threading.Thread(target=live)
        thread.start()
        yield
        closed.set()
        thread.join()

    def look(self) -> None:
        self._http.get(self._path).raise_for_status()
        points = self._http.get(f"{self._path}/curves", params=self._newest).raise_for_status().json()
        for name in self._newest:
            if points[name]:
                self._newest[name] = points[name][-1]["id"]
        self.looks += 1


def cpu_seconds(pid: int) -> float:
    """Of a process and its children."""
    process = psutil.Process(pid)
    return sum(sum(each.cpu_times()[:2]) for each in (process, *process.children(recursive=True)))


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.watching", description=__doc__)
    parser.add_argument("--rounds", type=int, default=12, help="of each kind")
    options = parser.parse_args()
    seconds: dict[str, list[float]] = {"watched": [], "alone": []}
    cpu = dict.fromkeys(seconds, 0.0)
    with tempfile.TemporaryDirectory() as folder, running_stack(Path(folder)) as stack, Client(stack.url) as client:
        session, api = client.create_session(bundled.NAME, rank=16, alpha=32), stack.processes["api"].pid
        page = Page(stack.url, session.id)
        round_of(session)
        for place in range(2 * options.rounds):
            kind = ("watched", "alone")[(place + place // 2) % 2]
            before = cpu_seconds(api)
            with page.open() if kind == "watched" else nullcontext():
                seconds[kind].append(round_of(session))
            cpu[kind] += cpu_seconds(api) - before
    looks = max(1, page.looks)
    # Other work on the machine only adds, so the quicker rounds tell most.
    watched, alone = (quantile(each, 0.25) for each in seconds.values())
    share, look = watched / alone - 1, (cpu["watched"] - cpu["alone"]) / looks
    print(
        f"a round, the quickest quarter: {watched:.2f} s watched, {alone:.2f} s alone ({100 * share:+.1f}%); "
        f"a look: {1000 * look:.0f} ms of CPU, {100 * look / PAUSE_SECONDS:.1f}% of a core"
    )
    write_report("watching", {"seconds": seconds, "share": share, "looks": looks, "cpu_seconds_per_look": look})


if __name__ == "__main__":
    main()
