"""The forward-backward operation: a loss over samples, its gradient added to the session's."""

from enum import StrEnum

import msgspec
import numpy as np


class Aggregation(StrEnum):
    """How per-token losses become the scalar; see docs/maths.md."""

    FIXED_HORIZON = "fixed_horizon"
    TOKEN_MEAN = "token_mean"
    SEQUENCE_MEAN = "sequence_mean"


class CrossEntropy(msgspec.Struct, frozen=True, tag="cross_entropy"):
    """Negative logprob of the targets, averaged over the call's weights."""


class Grpo(msgspec.Struct, frozen=True, kw_only=True, tag="grpo"):
    """Clipped policy ratio with an optional KL penalty.

    The clip bounds are absolute ratios (0.8, 1.28), whatever a dialect calls them.
    """

    ratio_low: float = 0.8
    ratio_high: float = 1.28
    beta: float = 0.0
    aggregation: Aggregation = Aggregation.FIXED_HORIZON


Loss = CrossEntropy | Grpo


class ForwardBackwardRequest(msgspec.Struct, frozen=True, kw_only=True):
    """N samples, packed: sample n owns the entries offsets[n]:offsets[n+1] of every array.

    Entry t predicts targets_T[t] from the sample's tokens up to and including tokens_T[t]. A
    sample may be empty. Arrays: offsets int64 [N+1]; tokens and targets int32 [T]; weights
    float32 [T], 0 where nothing is trained; advantages and logprobs float32 [T], present
    when the loss reads them. `forward_only` adds no gradient and `return_logprobs` answers the
    logprobs: no call of the native contract sets them; they belong to the engine's vocabulary.
    """

    offsets: np.ndarray
    tokens_T: np.ndarray
    targets_T: np.ndarray
    weights_T: np.ndarray
    loss: Loss
    advantages_T: np.ndarray | None = None
    generator_logprobs_T: np.ndarray | None = None
    reference_logprobs_T: np.ndarray | None = None
    forward_only: bool = False
    return_logprobs: bool = False


class ForwardBackwardResult(msgspec.Struct, frozen=True, kw_only=True):
    """The scalar whose gradient was added, its metrics, and logprobs float32 [T] if asked for."""

    loss: float
    metrics: dict[str, float]
    logprobs_T: np.ndarray | None = None
