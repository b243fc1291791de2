"""Whether our kernels are faster than torch's operations on this machine: measured, not assumed."""

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from workers.engine.backends.attention_layer import AttentionLayer, whole
from workers.engine.backends.backend import Backend
from workers.engine.backends.choice import NATIVE, TORCH
from workers.engine.kernels.kernel import built, choose
from workers.engine.kernels.levels import chosen

ROUNDS = 4
# What torch has to be faster by. Less may be noise, and a worker that starts again must choose as before: the last bits
# of its sums follow from the choice.
MARGIN = 1.25
WIDTH, OUTPUTS, FEW, MANY = 1024, 2048, 8, 192
HEADS, KV_HEADS, HEAD_SIZE, TOKENS = 8, 2, 64, 192

logger = logging.getLogger(__name__)

Work = Callable[[], Tensor]


@dataclass(frozen=True)
class Trial:
    """Seconds of CPU time that a kind of work takes, over all threads."""

    kind: str
    native: float
    torch: float

    def __str__(self) -> str:
        return f"{self.kind} {self.torch / self.native:.1f}x"


def kernels_for(dtype: torch.dtype) -> str:
    """What CELERITY_KERNELS `auto` means here for a base model of this dtype: "native" or "torch", and "auto" where no
    kernels were built."""
    if built() is None:
        return "auto"
    trials = measured(dtype, torch.get_num_threads())
    name = faster(trials)
    logger.info("kernels: %s, %s", name, described(trials))
    return name


def faster(trials: tuple[Trial, ...]) -> str:
    return "native" if advantage(trials) * MARGIN >= 1 else "torch"


def advantage(trials: tuple[Trial, ...]) -> float:
    """How much faster our kernels are, the geometric mean over the kinds of work."""
    return math.exp(sum(math.log(trial.torch / trial.native) for trial in trials) / len(trials))


def described(trials: tuple[Trial, ...]) -> str:
    level = chosen()
    assert level
    return f"level {level.name} against torch's operations: {', '.join(map(str, trials))}"


@cache
def measured(dtype: torch.dtype, threads: int) -> tuple[Trial, ...]:  # noqa: ARG001 - what is measured depends on them
    """The kinds of work by our kernels and by torch in turn, the best of some rounds: in all a third of a second."""
    choose("native")
    works = [_kinds(backend, dtype) for backend in (NATIVE, TORCH)]
    seconds = {kind: [math.inf, math.inf] for kind in works[0]}
    with torch.no_grad():
        for _ in range(ROUNDS):
            for side, kinds in enumerate(works):
                for kind, work in kinds.items():
                    seconds[kind][side] = min(seconds[kind][side], _seconds(work))
    return tuple(Trial(kind, *pair) for kind, pair in seconds.items())


def _kinds(backend: Backend, dtype: torch.dtype) -> dict[str, Work]:
    """A product of few rows, as in decoding; one of many, as in training; and attention."""
    draw = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=draw).to(dtype)

    linear = backend.linear(normal(OUTPUTS, WIDTH))
    few, many = normal(FEW, WIDTH), normal(MANY, WIDTH)
    q, k, v = (normal(TOKENS, heads, HEAD_SIZE) for heads in (HEADS, KV_HEADS, KV_HEADS))
    attention, layer = backend.attention(whole([TOKENS])), AttentionLayer(0, HEAD_SIZE**-0.5)
    return {
        f"{FEW} rows": lambda: linear.product(few),
        f"{MANY} rows": lambda: linear.product(many),
        "attention": lambda: attention(layer, q, k, v),
    }


def _seconds(work: Work) -> float:
    # Of all threads: what else runs on the machine does not count.
    started = time.process_time()
    work()
    return time.process_time() - started
