"""Negative logprob of the targets."""

from torch import Tensor


def cross_entropy(logprobs_T: Tensor) -> Tensor:
    """L_t = -lp_t."""
    return -logprobs_T
