"""`python -m benchmarks.prefixes`: training on eight completions of one prompt against eight prompts of their own."""

from benchmarks import options
from benchmarks.model import bundled_model, license_text
from benchmarks.race import print_rows, race
from benchmarks.report import write_report
from benchmarks.roster import CELERITY
from benchmarks.workloads import Writer


def main() -> None:
    asked = options.parse(__doc__)
    model = bundled_model()
    rows = []
    pair = Writer(license_text(model)).groups()
    for _, of in race([CELERITY], pair, model, asked.dtype, rounds=asked.rounds):
        print_rows(of)
        rows += of
    write_report(f"prefixes-{asked.dtype}", {"rows": rows, **asked.about})


if __name__ == "__main__":
    main()
