"""`python -m benchmarks.training`: a GRPO forward-backward and step over 32 ragged sequences, LoRA of rank 16.

Fails when two engines that compute the same loss do not agree on it.
"""

import sys
from typing import Any

from benchmarks import options
from benchmarks.engines import CELERITY, PEFT, engines
from benchmarks.model import bundled_model, license_text
from benchmarks.report import write_report
from benchmarks.runner import print_rows, run_alternately
from benchmarks.workloads import Training, Writer, ragged_lengths

NAME = "grpo"
# Of the loss; rounding in bf16 moves each logprob by a hundredth or so, and the ratios with them.
TOLERANCE = {"float32": 1e-3, "bfloat16": 3e-2}


def workload(text: list[int], quick: bool = False) -> Training:
    lengths = ragged_lengths(8, total=1228) if quick else ragged_lengths()
    return Writer(text).training(lengths, name=NAME)


def losses_differ(rows: list[dict[str, Any]], dtype: str) -> bool:
    losses = [row["loss"] for row in rows if row["engine"] in (CELERITY.name, PEFT.name)]
    return max(losses) - min(losses) > TOLERANCE[dtype] * max(map(abs, losses))


def main() -> None:
    asked = options.parse(__doc__)
    model = bundled_model()
    runners = engines("train", asked.engines)
    chosen = [workload(license_text(model), asked.quick)]
    for _, rows in run_alternately(runners, chosen, model, asked.dtype, rounds=asked.rounds):
        print_rows(rows)
        write_report(f"training-{asked.dtype}", {"rows": rows, **asked.about})
        if losses_differ(rows, asked.dtype):
            sys.exit(f"the engines do not agree on the loss: {[(row['engine'], row['loss']) for row in rows]}")


if __name__ == "__main__":
    main()
