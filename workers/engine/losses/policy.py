"""Policy losses that sum over tokens: r = exp(lp - q) is the policy ratio, A the advantage, sg stops the gradient."""

import torch
from torch import Tensor

from domain.forward_backward import Cispo, Dppo, Dro, ImportanceSampling, Ppo
from workers.engine.losses.arrays import TokenArrays
from workers.engine.losses.ratio import token_log_ratios, weighted_ratios


def policy_losses(
    logprobs_T: Tensor, arrays: TokenArrays, loss: ImportanceSampling | Ppo | Cispo | Dro | Dppo
) -> Tensor:
    """L_t fp32 [T] of whichever loss it is."""
    match loss:
        case ImportanceSampling():
            return importance_sampling(logprobs_T, arrays)
        case Ppo():
            return ppo(logprobs_T, arrays, loss)
        case Cispo():
            return cispo(logprobs_T, arrays, loss)
        case Dro():
            return dro(logprobs_T, arrays, loss)
        case Dppo():
            return dppo(logprobs_T, arrays, loss)


def importance_sampling(logprobs_T: Tensor, arrays: TokenArrays) -> Tensor:
    """L = -r A: its gradient is the policy gradient (Williams 1992, doi:10.1007/BF00992696), corrected for having been
    sampled from q."""
    return -weighted_ratios(token_log_ratios(logprobs_T, arrays), _advantages(arrays))


def ppo(logprobs_T: Tensor, arrays: TokenArrays, params: Ppo) -> Tensor:
    """L = max(-r A, -clamp(r, low, high) A) (Schulman et al. 2017, arXiv:1707.06347, equation 7)."""
    log_ratios_T = token_log_ratios(logprobs_T, arrays)
    return clipped_surrogate(log_ratios_T, _advantages(arrays), params.ratio_low, params.ratio_high)


def cispo(logprobs_T: Tensor, arrays: TokenArrays, params: Cispo) -> Tensor:
    """L = -sg(clamp(r, low, high)) A lp (MiniMax 2025, arXiv:2506.13585, equation 4): no token loses its gradient."""
    ratios_T = token_log_ratios(logprobs_T.detach(), arrays).exp()
    weights_T = ratios_T.clamp(params.ratio_low, params.ratio_high)
    return -weights_T * _advantages(arrays) * logprobs_T


def dro(logprobs_T: Tensor, arrays: TokenArrays, params: Dro) -> Tensor:
    """L = -(A lp - beta / 2 (lp - q)^2) (Richemond et al. 2024, arXiv:2405.19107)."""
    losses_T = -_advantages(arrays) * logprobs_T
    return losses_T + 0.5 * params.beta * token_log_ratios(logprobs_T, arrays).square() if params.beta else losses_T


def dppo(logprobs_T: Tensor, arrays: TokenArrays, params: Dppo) -> Tensor:
    """L = -M r A, where M is 0 for a token whose probability has moved by more than delta in the direction in which A
    pushes it, and 1 for all others (Qi et al. 2026, arXiv:2602.04879, equations 11 and 12, binary total variation).

    Positive A: left out when p - q > delta_high; negative A: when q - p > delta_low.
    """
    assert arrays.generator_logprobs_T is not None
    advantages_T = _advantages(arrays)
    moved_T = logprobs_T.detach().exp() - arrays.generator_logprobs_T.exp()
    too_far_T = torch.where(advantages_T > 0, moved_T > params.delta_high, -moved_T > params.delta_low)
    return -weighted_ratios(token_log_ratios(logprobs_T, arrays), advantages_T, too_far_T)


def clipped_surrogate(log_ratios_T: Tensor, advantages_T: Tensor, low: float, high: float) -> Tensor:
    """max(-r A, -clamp(r, low, high) A): where the second is larger the token is clipped, and has no gradient."""
    ratios_T = log_ratios_T.detach().exp()
    clipped_T = torch.where(advantages_T > 0, ratios_T > high, ratios_T < low)
    bounds_T = torch.where(advantages_T > 0, high, low) * advantages_T
    return -torch.where(clipped_T, bounds_T, weighted_ratios(log_ratios_T, advantages_T, clipped_T))


def _advantages(arrays: TokenArrays) -> Tensor:
    assert arrays.advantages_T is not None
    return arrays.advantages_T
