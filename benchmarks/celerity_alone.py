"""Workloads of ours alone, which are compared with each other."""

from collections.abc import Sequence

from benchmarks.engines import CELERITY
from benchmarks.model import bundled_model
from benchmarks.options import Options
from benchmarks.report import write_report
from benchmarks.runner import print_rows, runner, summary
from benchmarks.workloads import Workload


def measure(part: str, workloads: Sequence[Workload], asked: Options) -> None:
    """One report of them all, named after the part and the dtype. Every workload runs before any runs again."""
    with runner(CELERITY, bundled_model(), asked.dtype) as ours:
        rounds = [[ours.run(workload) for workload in workloads] for _ in range(asked.rounds)]
    by_workload = zip(workloads, zip(*rounds, strict=True), strict=True)
    rows = [summary(CELERITY.name, workload, list(readings)) for workload, readings in by_workload]
    print_rows(rows)
    write_report(f"{part}-{asked.dtype}", {"rows": rows, **asked.about})
