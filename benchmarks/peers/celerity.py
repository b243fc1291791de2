"""The product, through the engine's public methods: sessions with LoRA adapters that have been trained a step."""

import os
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.workloads import (
    ALPHA,
    GENERATOR_LOGPROB,
    HORIZON,
    LEARNING_RATE,
    RANK,
    RATIO_HIGH,
    RATIO_LOW,
    Request,
    Sample,
    Sampling,
    Training,
)
from domain.forward_backward import ForwardBackwardRequest, Grpo
from domain.optim_step import OptimStepRequest
from domain.sample import SampleRequest, SampleResult, SamplingParams
from domain.session import LoraConfig
from workers.engine.config import EngineConfig
from workers.engine.engine import Engine

STEP = OptimStepRequest(learning_rate=LEARNING_RATE)
WARM = Sample(tokens=[1, 2, 3, 4, 5, 6, 7, 8], advantage=1.0)


def sample_request(request: Request, seed: int = 0) -> SampleRequest:
    params = SamplingParams(max_tokens=request.max_tokens)
    return SampleRequest(
        prompts=(np.array(request.prompt, np.int32),), num_samples=request.num_samples, params=params, seed=seed
    )


def grpo_request(samples: list[Sample]) -> ForwardBackwardRequest:
    lengths = [sample.length for sample in samples]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return ForwardBackwardRequest(
        offsets=offsets,
        tokens_T=np.concatenate([sample.tokens[:-1] for sample in samples]).astype(np.int32),
        targets_T=np.concatenate([sample.tokens[1:] for sample in samples]).astype(np.int32),
        weights_T=np.concatenate([np.arange(sample.length) >= sample.trained_from for sample in samples]).astype(
            np.float32
        ),
        advantages_T=np.repeat([sample.advantage for sample in samples], lengths).astype(np.float32),
        generator_logprobs_T=np.full(offsets[-1], GENERATOR_LOGPROB, np.float32),
        loss=Grpo(ratio_low=RATIO_LOW, ratio_high=RATIO_HIGH),
    )


class Celerity:
    """Sessions are made when a workload first names them, one for each number and rank."""

    def __init__(self, model: Path, dtype: str, device: str, threads: int) -> None:
        self._model = model
        self._sessions: set[str] = set()
        kernels = os.environ.get("CELERITY_KERNELS", "auto")
        self.engine = Engine(
            EngineConfig(device=device, dtype=dtype, torch_threads=threads, horizon=HORIZON, kernels=kernels)
        )
        self.engine.start()
        self.session(0)

    def session(self, number: int, rank: int = RANK) -> str:
        name = f"{number}-of-rank-{rank}"
        if name not in self._sessions:
            self._sessions.add(name)
            lora = LoraConfig(rank=rank, alpha=ALPHA, dropout=0.0)
            self.engine.create_adapter(name, self._model, lora, seed=number).result()
            # A step, after which B is not zero and there is an adapter to compute.
            self._step([(name, [WARM])])
        return name

    def sample(self, workload: Sampling) -> int:
        return sum(len(sequence.tokens) for result in self.results(workload) for sequence in result.sequences)

    def results(self, workload: Sampling) -> list[SampleResult]:
        asked = [
            (self.session(request.session), sample_request(request, seed))
            for seed, request in enumerate(workload.requests)
        ]
        return _all([self.engine.sample(*one) for one in asked])

    def train(self, workload: Training) -> float:
        return self._step(
            [(self.session(session, workload.rank), workload.of(session)) for session in workload.sessions]
        )

    def prepare(self, workload: Sampling | Training) -> None:
        """Makes the sessions that the workload names, which is no part of its time."""
        if isinstance(workload, Sampling):
            numbers, rank = {request.session for request in workload.requests}, RANK
        else:
            numbers, rank = set(workload.sessions), workload.rank
        for number in numbers:
            self.session(number, rank)

    def close(self) -> None:
        self.engine.close()

    def _step(self, batches: list[tuple[str, list[Sample]]]) -> float:
        passes = [self.engine.forward_backward(name, grpo_request(samples), 0) for name, samples in batches]
        losses = [result.loss for result in _all(passes)]
        _all([self.engine.optim_step(name, STEP) for name, _ in batches])
        return sum(losses)


def _all(futures: "list[Future[Any]]") -> list[Any]:
    return [future.result() for future in futures]


def load(model: Path, dtype: str, device: str, threads: int) -> Celerity:
    return Celerity(model, dtype, device, threads)
