"""The forward-backward operation: a loss over samples, its gradient added to the session's."""

from enum import StrEnum

import msgspec
import numpy as np


class Aggregation(StrEnum):
    """How per-token losses become the scalar; see docs/maths.md."""

    FIXED_HORIZON = "fixed_horizon"
    TOKEN_MEAN = "token_mean"
    SEQUENCE_MEAN = "sequence_mean"
    SUM = "sum"


class RatioType(StrEnum):
    """Whether each token has a policy ratio of its own, or all of a sample share one; see docs/maths.md."""

    TOKEN = "token"
    SEQUENCE = "sequence"


class CrossEntropy(msgspec.Struct, frozen=True, kw_only=True, tag="cross_entropy"):
    """Negative logprob of the targets, weighted; weights may be fractions."""

    aggregation: Aggregation = Aggregation.TOKEN_MEAN


class Grpo(msgspec.Struct, frozen=True, kw_only=True, tag="grpo"):
    """Clipped policy ratio with an optional KL penalty.

    The clip bounds are absolute ratios (0.8, 1.28), whatever a dialect calls them.
    """

    ratio_low: float = 0.8
    ratio_high: float = 1.28
    beta: float = 0.0
    aggregation: Aggregation = Aggregation.FIXED_HORIZON
    ratio_type: RatioType = RatioType.TOKEN


class ImportanceSampling(msgspec.Struct, frozen=True, tag="importance_sampling"):
    """The policy gradient, corrected by the policy ratio; a sum over tokens, like the losses below."""


class Ppo(msgspec.Struct, frozen=True, kw_only=True, tag="ppo"):
    """Clipped policy ratio, the bounds being absolute."""

    ratio_low: float = 0.8
    ratio_high: float = 1.2


class Cispo(msgspec.Struct, frozen=True, kw_only=True, tag="cispo"):
    """The clipped policy ratio as a mere weight of the logprob, the bounds being absolute."""

    ratio_low: float = 0.0
    ratio_high: float = 4.0


class Dro(msgspec.Struct, frozen=True, kw_only=True, tag="dro"):
    """The logprob weighted by the advantage, with a quadratic penalty on the log ratio."""

    beta: float


class Dppo(msgspec.Struct, frozen=True, kw_only=True, tag="dppo"):
    """The policy ratio of tokens whose probability has changed by no more than so much, in [0, 1]."""

    delta_low: float = 0.15
    delta_high: float = 0.15


class WeightedLogprobs(msgspec.Struct, frozen=True, tag="weighted_logprobs"):
    """sum(w lp): a loss that was computed elsewhere, of which the weights are the gradient by the logprobs."""


PolicyLoss = Grpo | ImportanceSampling | Ppo | Cispo | Dro | Dppo
"""What reads advantages and the generator's logprobs."""

Loss = CrossEntropy | PolicyLoss | WeightedLogprobs


class ForwardBackwardRequest(msgspec.Struct, frozen=True, kw_only=True):
    """N samples, packed: sample n owns the entries offsets[n]:offsets[n+1] of every array.

    Entry t predicts targets_T[t] from the sample's tokens up to and including tokens_T[t]. A
    sample may be empty. Arrays: offsets int64 [N+1]; tokens and targets int32 [T]; weights
    float32 [T], 0 where nothing is trained; advantages and logprobs float32 [T], present
    when the loss reads them. `forward_only` adds no gradient and `return_logprobs` answers the
    logprobs of what is trained. `horizon` is the H of the fixed-horizon aggregation, as it was set when the request
    was accepted, so that a replay gives the same gradients; without it the worker's own counts.
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
    horizon: int | None = None


class ForwardBackwardResult(msgspec.Struct, frozen=True, kw_only=True):
    """The scalar whose gradient was added (or would have been), and its metrics.

    If asked for, `logprobs_T` float32 [T], 0 where the weight is 0, and the request's `offsets` to tell samples apart.
    """

    loss: float
    metrics: dict[str, float]
    logprobs_T: np.ndarray | None = None
    offsets: np.ndarray | None = None
