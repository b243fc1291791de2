"""Soft caps of scores and logits (Gemma 2, arXiv:2408.00118)."""

from torch import Tensor


def capped(scores: Tensor, softcap: float | None) -> Tensor:
    """In place; c tanh(score / c), or the scores themselves."""
    return scores if softcap is None else scores.div_(softcap).tanh_().mul_(softcap)


def softcap_derivative(scores: Tensor, softcap: float) -> Tensor:
    """Of a capped score by the score that it was made of, told from the capped one."""
    return (scores / softcap).square_().neg_().add_(1.0)
