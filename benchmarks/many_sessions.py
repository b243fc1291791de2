"""`python -m benchmarks.many_sessions`: eight sessions at once against one session with the same work.

For sampling, and for a forward-backward with its step; ours alone, since few peers have sessions at all.
"""

from benchmarks import celerity_alone, options
from benchmarks.model import bundled_model, license_text
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


if __name__ == "__main__":
    asked = options.parse(__doc__)
    celerity_alone.measure("many_sessions", workloads(license_text(bundled_model()), asked.quick), asked)
