"""Logprobs of given tokens without the [tokens, vocabulary] logits of a whole batch."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softmax

from workers.engine.frozen_linear import FrozenLinear, product

# Logits held at once, in elements: 64 MiB in fp32.
CHUNK_ELEMENTS = 1 << 24


def target_logprobs(hidden_ND: Tensor, head: FrozenLinear, targets_N: Tensor) -> tuple[Tensor, Tensor]:
    """fp32 logprobs of `targets_N` and entropies (nats), both [N], of softmax(hidden W^T).

    Log-softmax is taken in fp32 of the raw logits over the whole vocabulary. Only the logprobs are
    differentiable, and only by `hidden_ND`: the head is frozen.
    """
    logprobs_N, entropies_N = _TargetLogprobs.apply(hidden_ND, head, targets_N)
    return logprobs_N, entropies_N


class _TargetLogprobs(torch.autograd.Function):
    """What a token's logprob owes to its hidden state does not depend on the loss: it is found while the logits are at
    hand, so that they need not be computed again in backward. It takes as much memory as `hidden_ND`."""

    @staticmethod
    def forward(ctx: Any, hidden_ND: Tensor, head: FrozenLinear, targets_N: Tensor) -> tuple[Tensor, Tensor]:
        logprobs_N = hidden_ND.new_empty(len(targets_N), dtype=torch.float32)
        entropies_N = torch.empty_like(logprobs_N)
        slopes_ND = torch.empty_like(hidden_ND) if ctx.needs_input_grad[0] else None
        # Unpacked once for all chunks, and not at all where nothing is differentiated.
        weight_VD = head.dense() if slopes_ND is not None else None
        for part in chunks(len(targets_N), head.outputs):
            logits_CV = head.product(hidden_ND[part]).float()
            probabilities_CV = softmax(logits_CV, dim=-1)
            # The likeliest token's probability is never small, so that its log is exact.
            highest_C1, likeliest_C1 = logits_CV.max(1, keepdim=True)
            totals_C1 = highest_C1 - probabilities_CV.gather(1, likeliest_C1).log_()
            logprobs_N[part] = (logits_CV.gather(1, targets_N[part, None]) - totals_C1)[:, 0]
            means_C11 = torch.bmm(probabilities_CV[:, None], logits_CV[:, :, None])
            entropies_N[part] = totals_C1[:, 0] - means_C11[:, 0, 0]
            if slopes_ND is not None and weight_VD is not None:
                # d logprob / d logits = onehot(target) - softmax(logits)
                expected_CD = product(probabilities_CV.to(hidden_ND.dtype), weight_VD.T)
                slopes_ND[part] = weight_VD[targets_N[part]] - expected_CD
        ctx.slopes_ND = slopes_ND
        ctx.mark_non_differentiable(entropies_N)
        return logprobs_N, entropies_N

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        slopes_ND = ctx.slopes_ND
        return (slopes_ND * grads[0][:, None]).to(slopes_ND.dtype), None, None


def chunks(count: int, vocabulary: int, elements: int = CHUNK_ELEMENTS) -> list[slice]:
    """`count` rows in parts of at most so many logits, but of one row at least."""
    size = max(1, elements // vocabulary)
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]
