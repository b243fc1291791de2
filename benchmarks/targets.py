"""What must be reached, each as a ratio of two measurements of one run."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.engines import CELERITY, GENERATE, LLAMA, PEFT, VLLM
from benchmarks.options import DTYPES
from benchmarks.report import read_report

# Resident memory of the process at its peak, in bytes, on the batch that is trained.
MOST_MEMORY = {"bfloat16": 3.0e9, "float32": 4.5e9}


@dataclass(frozen=True)
class Target:
    """Tokens a second of one row of a part's file over those of another; rows are named (engine, workload)."""

    what: str
    part: str
    over: tuple[str, str]
    under: tuple[str, str]
    least: float

    def ratio(self) -> float | None:
        """None where either was not measured."""
        record = read_report(self.part)
        rates = {(row["engine"], row["workload"]): row["tokens_per_second"] for row in record["rows"]} if record else {}
        if self.over not in rates or self.under not in rates:
            return None
        return float(rates[self.over] / rates[self.under])


def targets() -> Iterator[Target]:
    ours = CELERITY.name
    for dtype in DTYPES:
        for workload, peer, least in (
            ("1 sequence", GENERATE.name, 3.0),
            ("1 sequence", LLAMA.name, 1.0),
            ("rollout", GENERATE.name, 4.0),
            ("rollout", VLLM.name, 1.2),
        ):
            part = f"sampling-{dtype}-{workload}"
            yield Target(f"{workload}, {dtype}, against {peer}", part, (ours, workload), (peer, workload), least)
        yield Target(f"training, {dtype}, against peft", f"training-{dtype}", (ours, "grpo"), (PEFT.name, "grpo"), 3.0)
        for task, least in (("sample", 0.8), ("train", 0.85)):
            many, one = (ours, f"{task}, sessions 8"), (ours, f"{task}, sessions 1")
            yield Target(f"eight sessions {task} against one, {dtype}", f"many_sessions-{dtype}", many, one, least)
        shared, own = (ours, "common prompt"), (ours, "prompts of their own")
        yield Target(f"common prompt in training, {dtype}", f"prefixes-{dtype}", shared, own, 2.5)


def memory(dtype: str) -> tuple[float, float] | None:
    """Bytes at the peak of our training, and the most there may be."""
    record = read_report(f"training-{dtype}")
    peaks: list[Any] = [row["peak_bytes"] for row in record["rows"] if row["engine"] == CELERITY.name] if record else []
    return (peaks[0], MOST_MEMORY[dtype]) if peaks else None
