"""`python -m benchmarks.exactness`: what must hold at every size that is measured, or the figures mean nothing.

The same request gives the same tokens alone and beside others, and what the sampler reports as a token's logprob is
what the trainer computes for it.
"""

import sys
from dataclasses import dataclass

import numpy as np

from benchmarks import options, sampling
from benchmarks.engines import THREADS
from benchmarks.model import bundled_model, license_text
from benchmarks.peers.celerity import Celerity, sample_request
from benchmarks.report import write_report
from benchmarks.workloads import RANK, Sampling, Writer
from domain.forward_backward import CrossEntropy, ForwardBackwardRequest
from domain.sample import SampleResult, Sequence

# Of the largest gap between sampler and trainer, and of the mean of all gaps. On a CPU both sum in one order, so that
# nothing but the log-softmax differs.
EXACT, ROUNDED = (1e-5, 1e-6), (2e-2, 2e-3)
LIMITS = {
    ("cpu", "float32"): EXACT,
    ("cpu", "bfloat16"): EXACT,
    ("cuda", "float32"): EXACT,
    ("cuda", "bfloat16"): ROUNDED,
}
ALONE = 4


@dataclass(frozen=True)
class Verdict:
    """`changed` are the requests whose tokens were others alone; the gaps are sampler minus trainer."""

    workload: str
    changed: list[int]
    largest_gap: float
    mean_gap: float

    def breaks(self, dtype: str, device: str = "cpu") -> list[str]:
        """In words, what does not hold."""
        largest, mean = LIMITS[device, dtype]
        return [
            said
            for said, broken in (
                (f"requests {self.changed} sampled other tokens alone", bool(self.changed)),
                (f"a logprob differs by {self.largest_gap:.1e}", not self.largest_gap <= largest),
                (f"logprobs differ by {self.mean_gap:.1e} in the mean", not abs(self.mean_gap) <= mean),
            )
            if broken
        ]


def judge(engine: Celerity, workload: Sampling, alone: int = ALONE) -> Verdict:
    """Runs the whole workload, then so many of its requests again, each alone."""
    together = engine.results(workload)
    chosen = np.unique(np.linspace(0, len(together) - 1, alone).astype(int)).tolist()
    changed = [index for index in chosen if not _same(together[index], _alone(engine, workload, index))]
    gaps = np.concatenate([_gaps(engine, workload, index, result) for index, result in enumerate(together)])
    return Verdict(workload.name, changed, float(np.abs(gaps).max()), float(gaps.mean()))


def _alone(engine: Celerity, workload: Sampling, index: int) -> SampleResult:
    request = workload.requests[index]
    return engine.engine.sample(engine.session(request.session), sample_request(request, seed=index)).result()


def _same(some: SampleResult, others: SampleResult) -> bool:
    pairs = zip(some.sequences, others.sequences, strict=True)
    return all(np.array_equal(one.tokens, other.tokens) for one, other in pairs)


def _gaps(engine: Celerity, workload: Sampling, index: int, result: SampleResult) -> np.ndarray:
    request = workload.requests[index]
    scoring = _scoring(request.prompt, result.sequences)
    session = engine.session(request.session, RANK)
    logprobs_T = engine.engine.forward_backward(session, scoring, 0).result().logprobs_T
    assert logprobs_T is not None
    trained = scoring.weights_T != 0
    return np.concatenate([sequence.logprobs for sequence in result.sequences]) - logprobs_T[trained]


def _scoring(prompt: list[int], sequences: tuple[Sequence, ...]) -> ForwardBackwardRequest:
    """The trainer's view of completions: their logprobs, and no gradient."""
    wholes = [np.concatenate([prompt, sequence.tokens]).astype(np.int32) for sequence in sequences]
    lengths = [len(whole) - 1 for whole in wholes]
    return ForwardBackwardRequest(
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        tokens_T=np.concatenate([whole[:-1] for whole in wholes]),
        targets_T=np.concatenate([whole[1:] for whole in wholes]),
        weights_T=np.concatenate([np.arange(n) >= len(prompt) - 1 for n in lengths]).astype(np.float32),
        loss=CrossEntropy(),
        forward_only=True,
        return_logprobs=True,
    )


def main() -> None:
    asked = options.parse(__doc__)
    model = bundled_model()
    text = license_text(model)
    mixed = Writer(text).batch(32, sessions=8, name="eight sessions")
    engine = Celerity(model, asked.dtype, "cpu", THREADS)
    verdicts = [judge(engine, one) for one in [*sampling.workloads(text, asked.quick), mixed] if asked.wants(one.name)]
    engine.close()
    broken = [f"{one.workload}: {said}" for one in verdicts for said in one.breaks(asked.dtype)]
    for one in verdicts:
        print(f"{one.workload:16} largest gap {one.largest_gap:.1e}, mean {one.mean_gap:+.1e}, changed {one.changed}")
    write_report(f"exactness-{asked.dtype}", {"rows": [vars(one) for one in verdicts], **asked.about, "broken": broken})
    if broken:
        sys.exit("\n".join(broken))


if __name__ == "__main__":
    main()
