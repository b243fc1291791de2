"""Logprobs of given tokens without the [tokens, vocabulary] logits of a whole batch."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear, log_softmax

# Logits held at once, in elements: 64 MiB in fp32.
CHUNK_ELEMENTS = 1 << 24


def target_logprobs(hidden_ND: Tensor, weight_VD: Tensor, targets_N: Tensor) -> tuple[Tensor, Tensor]:
    """fp32 logprobs of `targets_N` and entropies (nats), both [N], of softmax(hidden W^T).

    Log-softmax is taken in fp32 of the raw logits over the whole vocabulary. Only the logprobs are
    differentiable, and only by `hidden_ND`: the head is frozen.
    """
    logprobs_N, entropies_N = _TargetLogprobs.apply(hidden_ND, weight_VD, targets_N)
    return logprobs_N, entropies_N


class _TargetLogprobs(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden_ND: Tensor, weight_VD: Tensor, targets_N: Tensor) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(hidden_ND, weight_VD, targets_N)
        logprobs_N = hidden_ND.new_empty(len(targets_N), dtype=torch.float32)
        entropies_N = torch.empty_like(logprobs_N)
        for part in _chunks(len(targets_N), weight_VD.shape[0]):
            logprobs_CV = _log_softmax(hidden_ND[part], weight_VD)
            logprobs_N[part] = logprobs_CV.gather(1, targets_N[part, None])[:, 0]
            # A token of probability 0 adds nothing, though its logprob may be -inf.
            entropies_N[part] = torch.special.entr(logprobs_CV.exp()).sum(1)
        ctx.mark_non_differentiable(entropies_N)
        return logprobs_N, entropies_N

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        hidden_ND, weight_VD, targets_N = ctx.saved_tensors
        grad_hidden_ND = torch.empty_like(hidden_ND)
        for part in _chunks(len(targets_N), weight_VD.shape[0]):
            # d logprob / d logits = onehot(target) - softmax(logits)
            grad_CV = _log_softmax(hidden_ND[part], weight_VD).exp_().neg_()
            grad_CV.scatter_add_(1, targets_N[part, None], torch.ones_like(grad_CV[:, :1]))
            grad_CV *= grads[0][part, None]
            grad_hidden_ND[part] = grad_CV.to(weight_VD.dtype) @ weight_VD
        return grad_hidden_ND, None, None


def _log_softmax(hidden_CD: Tensor, weight_VD: Tensor) -> Tensor:
    return log_softmax(linear(hidden_CD, weight_VD).float(), dim=-1)


def _chunks(count: int, vocabulary: int) -> list[slice]:
    size = max(1, CHUNK_ELEMENTS // vocabulary)
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]
