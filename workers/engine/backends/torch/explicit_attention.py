"""Attention weights one by one, in fp32: for scores that are capped or compete with a sink, and for gradients."""

import torch
from torch import Tensor


def capped(scores: Tensor, softcap: float | None) -> Tensor:
    """In place; c tanh(score / c), or the scores themselves."""
    return scores if softcap is None else scores.div_(softcap).tanh_().mul_(softcap)


def softcap_derivative(scores: Tensor, softcap: float) -> Tensor:
    """Of a capped score by the score that it was made of, told from the capped one."""
    return (scores / softcap).square_().neg_().add_(1.0)


def softmax(scores: Tensor, sinks: Tensor | None) -> Tensor:
    """Over the last dimension. `sinks`, of the same shape but for a last dimension of 1, take part and are left out of
    the result, whose rows then sum to less than 1."""
    if sinks is None:
        return scores.softmax(-1)
    return torch.cat([scores, sinks.to(scores.dtype)], -1).softmax(-1)[..., :-1]
