"""The policy ratio r = p / q of the current policy to the one that generated the tokens."""

import torch
from torch import Tensor

from workers.engine.losses.arrays import TokenArrays


def token_ratios(logprobs_T: Tensor, arrays: TokenArrays) -> Tensor:
    """r = exp(lp - q); infinite when the difference is beyond fp32."""
    assert arrays.generator_logprobs_T is not None
    return (logprobs_T - arrays.generator_logprobs_T).exp()


def sequence_ratios(logprobs_T: Tensor, arrays: TokenArrays) -> Tensor:
    """r = exp(mean of lp - q over the sample's tokens that are here), the same for all of them.

    The sequence-level ratio of GSPO, length-normalised (Zheng et al. 2025, arXiv:2507.18071, equation 7).
    """
    assert arrays.generator_logprobs_T is not None
    differences_T = logprobs_T - arrays.generator_logprobs_T
    _, sample_T, lengths_S = torch.unique(arrays.samples_T, return_inverse=True, return_counts=True)
    sums_S = torch.zeros(len(lengths_S), dtype=differences_T.dtype, device=differences_T.device)
    means_S = sums_S.index_add(0, sample_T, differences_T) / lengths_S
    return means_S.exp()[sample_T]
