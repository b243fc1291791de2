"""Calls of an engine, and requests, in few words."""

from collections.abc import Sequence as ListOf
from concurrent.futures import Future
from typing import Any

import numpy as np

from domain.forward_backward import CrossEntropy, ForwardBackwardRequest, ForwardBackwardResult, Loss
from domain.operation import OperationError, OperationFailedError
from domain.optim_step import OptimStepRequest
from domain.sample import SampleRequest, SamplingParams, Sequence
from workers.engine.adapters.adapter import Adapter
from workers.engine.core import ServedModel
from workers.engine.engine import Engine

Tokens = ListOf[int] | np.ndarray


def sample_request(prompts: ListOf[Tokens], num_samples: int = 1, seed: int = 0, **params: Any) -> SampleRequest:
    arrays = tuple(np.array(prompt, np.int32) for prompt in prompts)
    return SampleRequest(prompts=arrays, num_samples=num_samples, params=SamplingParams(**params), seed=seed)


def sample(engine: Engine, prompts: ListOf[Tokens], session: str = "s", **asked: Any) -> list[Sequence]:
    return list(engine.sample(session, sample_request(prompts, **asked)).result().sequences)


def failure_of(future: "Future[Any]") -> OperationError:
    error = future.exception(timeout=60)
    assert isinstance(error, OperationFailedError)
    return error.error


def packed(
    samples: ListOf[tuple[Tokens, Tokens]],
    loss: Loss | None = None,
    weights: ListOf[ListOf[float]] | None = None,
    **arrays: Any,
) -> ForwardBackwardRequest:
    """From (tokens, targets) per sample; per-sample lists in `arrays` are packed, flags passed on."""
    lengths = [len(tokens) for tokens, _ in samples]
    rest: dict[str, Any] = {
        name: arrays.pop(name) for name in ("forward_only", "return_logprobs", "horizon") if name in arrays
    }
    rest |= {f"{name}_T": _joined(parts, np.float32) for name, parts in arrays.items()}
    return ForwardBackwardRequest(
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        tokens_T=_joined([tokens for tokens, _ in samples], np.int32),
        targets_T=_joined([targets for _, targets in samples], np.int32),
        weights_T=_joined(weights or [[1.0] * length for length in lengths], np.float32),
        loss=loss or CrossEntropy(),
        **rest,
    )


def forward_backward(
    engine: Engine, request: ForwardBackwardRequest, session: str = "s", seed: int = 0
) -> ForwardBackwardResult:
    return engine.forward_backward(session, request, seed).result()


def logprobs_of(engine: Engine, samples: ListOf[tuple[Tokens, Tokens]], session: str = "s") -> list[np.ndarray]:
    """What the trainer computes for each target, one array per sample."""
    request = packed(samples, forward_only=True, return_logprobs=True)
    logprobs_T = forward_backward(engine, request, session).logprobs_T
    assert logprobs_T is not None
    return np.split(logprobs_T, request.offsets[1:-1])


def optim_step(engine: Engine, session: str = "s", **settings: Any) -> dict[str, float]:
    return engine.optim_step(session, OptimStepRequest(**settings)).result().metrics


def adapter_of(engine: Engine, session: str = "s") -> Adapter:
    """The session's weights and gradients, to be compared."""
    return engine._core._cached[session].adapter


def model_of(engine: Engine, session: str = "s") -> ServedModel:
    return engine._core._cached[session].model


def random_tokens(seed: int, length: int, vocabulary: int = 256) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, vocabulary, length).astype(np.int32)


def random_sample(seed: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    tokens = random_tokens(seed, length + 1)
    return tokens[:-1], tokens[1:]


def _joined(parts: ListOf[Tokens] | ListOf[ListOf[float]], dtype: type) -> np.ndarray:
    return np.concatenate([np.asarray(part, dtype) for part in parts])
