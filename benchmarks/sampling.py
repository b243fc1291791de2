"""`python -m benchmarks.sampling`: tokens a second of each engine, with logprobs, for batches and for a rollout."""

from benchmarks import options
from benchmarks.engines import engines
from benchmarks.model import bundled_model, license_text
from benchmarks.report import write_report
from benchmarks.runner import print_rows, run_alternately
from benchmarks.workloads import Sampling, Writer

BATCHES = (1, 8, 32)


def workloads(text: list[int], quick: bool = False) -> list[Sampling]:
    writer = Writer(text)
    batches = [writer.batch(sequences, max_tokens=32 if quick else 64) for sequences in BATCHES]
    return [*batches, writer.rollout(num_samples=2 if quick else 8)]


def main() -> None:
    asked = options.parse(__doc__)
    model = bundled_model()
    chosen = [one for one in workloads(license_text(model), asked.quick) if asked.wants(one.name)]
    runners = engines("sample", asked.engines)
    for workload, rows in run_alternately(runners, chosen, model, asked.dtype, rounds=asked.rounds):
        print_rows(rows)
        write_report(f"sampling-{asked.dtype}-{workload.name}", {"rows": rows, **asked.about})


if __name__ == "__main__":
    main()
