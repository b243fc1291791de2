"""The policy ratio r = p / q of the current policy to the one that generated the tokens, by its logarithm."""

import torch
from torch import Tensor

from workers.engine.losses.arrays import TokenArrays


def token_log_ratios(logprobs_T: Tensor, arrays: TokenArrays) -> Tensor:
    """log r = lp - q."""
    assert arrays.generator_logprobs_T is not None
    return logprobs_T - arrays.generator_logprobs_T


def sequence_log_ratios(logprobs_T: Tensor, arrays: TokenArrays) -> Tensor:
    """log r = mean of lp - q over the sample's tokens that are here, the same for all of them.

    The sequence-level ratio of GSPO, length-normalised (Zheng et al. 2025, arXiv:2507.18071, equation 7).
    """
    differences_T = token_log_ratios(logprobs_T, arrays).double()
    _, sample_T, lengths_S = torch.unique(arrays.samples_T, return_inverse=True, return_counts=True)
    sums_S = torch.zeros(len(lengths_S), dtype=differences_T.dtype, device=differences_T.device)
    means_S = sums_S.index_add(0, sample_T, differences_T) / lengths_S
    return means_S.float()[sample_T]


def weighted_ratios(log_ratios_T: Tensor, advantages_T: Tensor, removed_T: Tensor | None = None) -> Tensor:
    """r A; exactly 0, with a gradient of exactly 0, where a token is removed or its advantage is 0: also where r is
    beyond fp32, since 0 times infinity would be NaN, in the gradient even of what is thrown away."""
    zero_T = advantages_T == 0 if removed_T is None else removed_T | (advantages_T == 0)
    return log_ratios_T.masked_fill(zero_T, 0.0).exp() * advantages_T.masked_fill(zero_T, 0.0)
