"""`python -m benchmarks.curves`: how our throughput grows with batch, sequence length, adapters and rank."""

from benchmarks import options
from benchmarks.engines import CELERITY
from benchmarks.model import bundled_model, license_text
from benchmarks.report import write_report
from benchmarks.runner import run_alternately
from benchmarks.workloads import Workload, Writer

DOUBLINGS = (1, 2, 4, 8, 16, 32, 64)
# Tokens of each call that the curves over length and rank train on.
TRAINED = 2048


def curves(text: list[int], quick: bool = False) -> dict[str, dict[int, Workload]]:
    """By what is varied, then by its value."""
    writer, points = Writer(text), DOUBLINGS[::3] if quick else DOUBLINGS
    budget = 8 if quick else 32
    return {
        "sequences sampled together": {n: writer.batch(n, max_tokens=budget) for n in points},
        "sessions sampling together": {n: writer.batch(64, max_tokens=budget, sessions=n) for n in points},
        "length of what is trained on": {
            64 * n: writer.training([64 * n] * (TRAINED // (64 * n))) for n in points if 64 * n <= TRAINED
        },
        "sessions training together": {n: writer.training([64] * 64, sessions=n) for n in points},
        "rank": {n: writer.training([128] * (TRAINED // 128), rank=n) for n in points},
    }


def main() -> None:
    asked = options.parse(__doc__, rounds=2)
    model = bundled_model()
    for curve, points in curves(license_text(model), asked.quick).items():
        if not asked.wants(curve):
            continue
        print(curve)
        rows = []
        measured = run_alternately([CELERITY], list(points.values()), model, asked.dtype, rounds=asked.rounds)
        for value, (_, (row,)) in zip(points, measured, strict=True):
            print(f"{value:8} {row['tokens_per_second']:8.0f} tokens/s", flush=True)
            rows.append(row | {"value": value})
        write_report(f"curve-{asked.dtype}-{curve}", {"rows": rows, **asked.about, "curve": curve})


if __name__ == "__main__":
    main()
