"""`python -m benchmarks.choices`: what a caller's choices cost, each beside the same work without it.

Of sampling 32 sequences: how tokens are drawn, and what ends a completion. Of a forward-backward: its loss, dropout.
"""

import time
from collections.abc import Callable
from functools import partial
from statistics import median_low
from typing import Any

from msgspec.structs import replace

from benchmarks import options
from benchmarks.engines import THREADS
from benchmarks.model import bundled_model, license_text
from benchmarks.peers.celerity import Celerity, grpo_request, sample_request
from benchmarks.report import write_report
from benchmarks.workloads import ALPHA, RANK, Writer, ragged_lengths
from domain.forward_backward import CrossEntropy, Loss
from domain.session import LoraConfig

SAMPLED: dict[str, dict[str, Any]] = {
    "sample": {},
    "temperature 0.7": {"temperature": 0.7},
    "top-k 50": {"top_k": 50},
    "top-p 0.95": {"top_p": 0.95},
    "a stop string": {"stop": ("\n\n\n\n\n",)},
}
DROPOUT = LoraConfig(rank=RANK, alpha=ALPHA)

Work = Callable[[], object]


def groups(ours: Celerity, text: list[int], quick: bool) -> list[dict[str, Work]]:
    """Works by name, those of a group to be compared with its first, which is without choices."""
    writer, tokens = Writer(text), 16 if quick else 64
    requests = [sample_request(one, seed) for seed, one in enumerate(writer.batch(32, max_tokens=tokens).requests)]
    lengths = ragged_lengths(8, total=1228) if quick else ragged_lengths(16, total=2455)
    batch = grpo_request(writer.training(lengths).samples)
    plain, dropped = ours.session(0), "with dropout"
    ours.engine.create_adapter(dropped, bundled_model(), DROPOUT, seed=0).result()

    def sample(params: dict[str, Any]) -> None:
        asked = [replace(request, params=replace(request.params, **params)) for request in requests]
        for future in [ours.engine.sample(plain, one) for one in asked]:
            future.result()

    def train(session: str, loss: Loss) -> None:
        ours.engine.forward_backward(session, replace(batch, loss=loss), 0).result()

    return [
        {name: partial(sample, params) for name, params in SAMPLED.items()},
        {
            "forward-backward, GRPO": partial(train, plain, batch.loss),
            "cross-entropy": partial(train, plain, CrossEntropy()),
            f"cross-entropy, dropout {DROPOUT.dropout}": partial(train, dropped, CrossEntropy()),
        },
    ]


def seconds(work: Work) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def measure(group: dict[str, Work], rounds: int) -> list[dict[str, Any]]:
    """Medians; every work runs before any runs again."""
    taken = [[seconds(work) for work in group.values()] for _ in range(rounds)]
    medians = [median_low(times) for times in zip(*taken, strict=True)]
    return [
        {"work": name, "seconds": median, "of_the_first": median / medians[0]}
        for name, median in zip(group, medians, strict=True)
    ]


def main() -> None:
    asked = options.parse(__doc__)
    ours = Celerity(bundled_model(), asked.dtype, "cpu", THREADS)
    works = groups(ours, license_text(bundled_model()), asked.quick)
    rows = [row for group in works for row in measure(group, asked.rounds)]
    ours.close()
    for row in rows:
        print(f"{row['work']:28} {row['seconds']:7.2f} s {row['of_the_first']:6.2f}")
    write_report(f"choices-{asked.dtype}", {"rows": rows, **asked.about})


if __name__ == "__main__":
    main()
