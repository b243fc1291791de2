"""Clipped policy ratio with an optional KL penalty.

Clipping as in PPO (Schulman et al. 2017, arXiv:1707.06347) with bounds of their own on either side
(Yu et al. 2025, arXiv:2503.14476); group-relative advantages and the penalty as in GRPO (Shao et al.
2024, arXiv:2402.03300); the KL estimator is k3 of Schulman 2020, joschu.net/blog/kl-approx.html.
"""

import torch
from torch import Tensor

from domain.forward_backward import Grpo, RatioType
from workers.engine.losses.arrays import TokenArrays
from workers.engine.losses.policy import clipped_surrogate
from workers.engine.losses.ratio import sequence_log_ratios, token_log_ratios

LOG_RATIO_BOUND = 10.0


def grpo(logprobs_T: Tensor, arrays: TokenArrays, params: Grpo) -> Tensor:
    """L_t = max(-r A, -clamp(r, low, high) A) + beta * KL, with r the token's ratio or its sequence's."""
    assert arrays.advantages_T is not None
    log_ratios_T = _log_ratios(logprobs_T, arrays, params)
    losses_T = clipped_surrogate(log_ratios_T, arrays.advantages_T, params.ratio_low, params.ratio_high)
    return losses_T + params.beta * reference_kl(logprobs_T, arrays) if params.beta else losses_T


def _log_ratios(logprobs_T: Tensor, arrays: TokenArrays, params: Grpo) -> Tensor:
    of = sequence_log_ratios if params.ratio_type is RatioType.SEQUENCE else token_log_ratios
    return of(logprobs_T, arrays)


def reference_kl(logprobs_T: Tensor, arrays: TokenArrays) -> Tensor:
    """KL = exp(d) - d - 1 with d = ref - lp clamped to [-10, 10]."""
    assert arrays.reference_logprobs_T is not None
    d_T = (arrays.reference_logprobs_T - logprobs_T).clamp(-LOG_RATIO_BOUND, LOG_RATIO_BOUND)
    return d_T.exp() - d_T - 1.0


def grpo_metrics(logprobs_T: Tensor, entropies_T: Tensor, arrays: TokenArrays, params: Grpo) -> dict[str, float]:
    """Over trained tokens; all 0 when there are none. A ratio beyond fp32 counts as the largest number in it."""
    assert arrays.advantages_T is not None
    assert arrays.generator_logprobs_T is not None
    ratios_T = _log_ratios(logprobs_T, arrays, params).exp().clamp(max=torch.finfo(torch.float32).max)
    metrics = {
        "loss/ratio/mean": _mean(ratios_T),
        "loss/ratio/max": float(ratios_T.max()) if len(ratios_T) else 0.0,
        "loss/kl_policy/mean": _mean(arrays.generator_logprobs_T - logprobs_T),
        "loss/clip/high_fraction": _mean((ratios_T > params.ratio_high) & (arrays.advantages_T > 0)),
        "loss/clip/low_fraction": _mean((ratios_T < params.ratio_low) & (arrays.advantages_T < 0)),
        "entropy/mean": _mean(entropies_T),
    }
    if params.beta:
        metrics["loss/kl_ref/mean"] = _mean(reference_kl(logprobs_T, arrays))
    return metrics


def _mean(values_T: Tensor) -> float:
    return float(values_T.double().mean()) if len(values_T) else 0.0
