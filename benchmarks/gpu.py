"""`python -m benchmarks.gpu`: the ratios against `generate` and peft on one GPU, in bf16, with a random Llama.

Seconds are by CUDA's events and memory is what torch allocated. `--device cpu --tiny` runs the same way to its end on
a machine without a GPU.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from benchmarks import sampling, training
from benchmarks.engines import CELERITY, GENERATE, PEFT
from benchmarks.model import ROOT, random_llama, random_text
from benchmarks.report import write_report
from benchmarks.runner import print_rows, run_alternately
from benchmarks.workloads import Workload

DTYPE = "bfloat16"
ONE_BILLION = {"layers": 16, "hidden": 2048, "heads": 32, "kv_heads": 8, "vocab_size": 128_256}
TINY = {"layers": 2, "hidden": 64, "heads": 4, "kv_heads": 2, "vocab_size": 512}


def measure(model: Path, text: list[int], device: str, tiny: bool) -> Iterator[dict[str, Any]]:
    """One peer at a time beside the product, so that the device holds two models and no more."""
    tasks: tuple[tuple[Any, list[Workload]], ...] = (
        (GENERATE, list(sampling.workloads(text, tiny))),
        (PEFT, [training.workload(text, tiny)]),
    )
    for peer, workloads in tasks:
        for _, rows in run_alternately([CELERITY, peer], workloads, model, DTYPE, rounds=3, device=device):
            print_rows(rows)
            ours, theirs = (row["tokens_per_second"] for row in rows)
            print(f"{'':24} {ours / theirs:.2f} times {peer.name}", flush=True)
            yield from rows


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--tiny", action="store_true", help="a tiny model and less work")
    asked = parser.parse_args()
    size = TINY if asked.tiny else ONE_BILLION
    model = random_llama(ROOT / ".bench" / ("llama-tiny" if asked.tiny else "llama-1b"), asked.device, **size)
    name = torch.cuda.get_device_name() if asked.device == "cuda" else "cpu"
    print(f"{name}, torch {torch.__version__}, {DTYPE}, {size}")
    rows = list(measure(model, random_text(size["vocab_size"]), asked.device, asked.tiny))
    write_report("gpu", {"device": name, "torch": torch.__version__, "dtype": DTYPE, "model": size, "rows": rows})


if __name__ == "__main__":
    main()
