"""`python -m benchmarks.crowd`: eight sessions at once against one session with the same work.

For sampling, and for a forward-backward with its step; ours alone, since few peers have sessions at all.
"""

from benchmarks import options
from benchmarks.model import bundled_model, license_text
from benchmarks.race import print_rows, race
from benchmarks.report import write_report
from benchmarks.roster import CELERITY
from benchmarks.workloads import Workload, Writer, ragged_lengths

SESSIONS = 8


def workloads(text: list[int], quick: bool = False) -> list[Workload]:
    """The same tokens for one session and for several."""
    lengths = ragged_lengths(16, total=2455) if quick else ragged_lengths()
    budget = 16 if quick else 64
    return [
        made
        for sessions in (1, SESSIONS)
        for made in (
            Writer(text).batch(32, max_tokens=budget, sessions=sessions, name=f"sample, sessions {sessions}"),
            Writer(text).training(lengths, sessions=sessions, name=f"train, sessions {sessions}"),
        )
    ]


def main() -> None:
    asked = options.parse(__doc__)
    model = bundled_model()
    rows = []
    chosen = workloads(license_text(model), asked.quick)
    for _, of in race([CELERITY], chosen, model, asked.dtype, rounds=asked.rounds):
        print_rows(of)
        rows += of
    write_report(f"crowd-{asked.dtype}", {"rows": rows, **asked.about})


if __name__ == "__main__":
    main()
