"""How much of a pipelined loop nothing runs: `python -m benchmarks.pipelined`.

Forward-backward, optim-step and sample, round after round, all sent ahead, on the bundled model. An operation runs from
its claim to its end, both as the store has them; what no operation covers between the first and the last is idle: the
release of the next one, its message, and its claim. Inside an operation the engine waits only for the request to be
read and the result to be written, which `benchmarks.round_trip` shows.
"""

import argparse
import tempfile
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.report import write_report
from celerity_client import Client, grpo_example
from models import bundled
from stack.running import running_stack
from testing.bodies import Json

PROMPT = [504, 2365, 28, 216] * 8
EXAMPLES = [grpo_example(PROMPT, [30, 198, 504, 2365] * 8, [-1.0] * 32, advantage=1.0)] * 4
SAMPLE: dict[str, Any] = {"num_samples": 4, "max_tokens": 16, "seed": 1}


def pipeline(client: Client, rounds: int) -> list[Json]:
    """The operations of so many rounds, all accepted before the first has ended, with their times."""
    session = client.create_session(bundled.NAME)
    session.sample(PROMPT, **SAMPLE).result()
    for _ in range(rounds):
        session.grpo(EXAMPLES, agg_type="token_mean")
        session.optim_step(1e-6)
        last = session.sample(PROMPT, **SAMPLE)
    last.result()
    return client.operations(session.id, limit=100)[: 3 * rounds]


def idle_share(operations: list[Json]) -> float:
    """The share of the time from the first's start to the last's end that no operation covers."""
    spans = sorted((_seconds(each["started_at"]), _seconds(each["ended_at"])) for each in operations)
    idle = sum(max(0.0, later[0] - earlier[1]) for earlier, later in pairwise(spans))
    return idle / (spans[-1][1] - spans[0][0])


def _seconds(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.pipelined", description=__doc__)
    parser.add_argument("--rounds", type=int, default=6)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="celerity-pipelined-") as folder,
        running_stack(Path(folder) / "data", settings={"CELERITY_DEVICE": "cpu"}) as stack,
    ):
        operations = pipeline(Client(stack.url), options.rounds)
    share = idle_share(operations)
    spans = [_seconds(each["ended_at"]) - _seconds(each["started_at"]) for each in operations]
    print(
        f"{len(operations)} operations of {1000 * sum(spans) / len(spans):.0f} ms on average: idle {100 * share:.1f}%"
    )
    write_report("pipelined", {"rounds": options.rounds, "idle_share": share, "seconds": spans})


if __name__ == "__main__":
    main()
