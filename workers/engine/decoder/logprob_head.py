"""Logprobs of given tokens without the [tokens, vocabulary] logits of a whole batch."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softmax

from workers.engine.decoder.head import Head
from workers.engine.kernels import functional
from workers.engine.kernels.kernel import have_kernels

# Logits held at once, in elements: 64 MiB in fp32. Our own product is as fast with fewer, which glibc need not ask the
# system for each time.
CHUNK_ELEMENTS, PACKED_CHUNK_ELEMENTS = 1 << 24, 6 << 20


def target_logprobs(hidden_ND: Tensor, head: Head, targets_N: Tensor) -> tuple[Tensor, Tensor]:
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
    def forward(ctx: Any, hidden_ND: Tensor, head: Head, targets_N: Tensor) -> tuple[Tensor, Tensor]:
        logprobs_N = hidden_ND.new_empty(len(targets_N), dtype=torch.float32)
        entropies_N = torch.empty_like(logprobs_N)
        slopes_ND = torch.empty_like(hidden_ND) if ctx.needs_input_grad[0] else None
        # Laid out once for all chunks, and not at all where nothing is differentiated.
        transposed = head.transposed() if slopes_ND is not None else None
        for part in head_chunks(len(targets_N), head):
            logits_CV = head.product(hidden_ND[part])
            of_logits_CV = None if transposed is None else head.derivative(logits_CV)
            logprobs_N[part], entropies_N[part] = read(logits_CV, targets_N[part], slopes_ND is not None)
            if of_logits_CV is not None:
                logits_CV *= of_logits_CV
            if slopes_ND is not None and transposed is not None:
                slopes_ND[part] = transposed.product(logits_CV)
        ctx.slopes_ND = slopes_ND
        ctx.mark_non_differentiable(entropies_N)
        return logprobs_N, entropies_N

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        slopes_ND = ctx.slopes_ND
        return (slopes_ND * grads[0][:, None]).to(slopes_ND.dtype), None, None


def read(logits_CV: Tensor, targets_C: Tensor, become_slopes: bool = False) -> tuple[Tensor, Tensor]:
    """fp32 logprobs of the targets and entropies, each [C].

    Where asked the logits become d logprob / d logits = onehot(target) - softmax(logits), rounded after the
    difference, which is small where the target is likely.
    """
    method = functional.target_logprobs if have_kernels(logits_CV.device, logits_CV.dtype) else _read_plainly
    return method(logits_CV, targets_C, become_slopes)


def _read_plainly(logits_CV: Tensor, targets_C: Tensor, become_slopes: bool) -> tuple[Tensor, Tensor]:
    wide_CV = logits_CV.float()
    probabilities_CV = softmax(wide_CV, dim=-1)
    # The likeliest token's probability is never small, so that its log is exact.
    highest_C1, likeliest_C1 = wide_CV.max(1, keepdim=True)
    totals_C1 = highest_C1 - probabilities_CV.gather(1, likeliest_C1).log_()
    logprobs_C1 = wide_CV.gather(1, targets_C[:, None]) - totals_C1
    means_C11 = torch.bmm(probabilities_CV[:, None], wide_CV[:, :, None])
    if become_slopes:
        logits_CV.copy_(probabilities_CV.neg_().scatter_(1, targets_C[:, None], -torch.expm1(logprobs_C1)))
    return logprobs_C1[:, 0], totals_C1[:, 0] - means_C11[:, 0, 0]


def head_chunks(count: int, head: Head) -> list[slice]:
    """`count` rows in parts whose logits may be held at once."""
    return chunks(count, head.outputs, PACKED_CHUNK_ELEMENTS if head.packed else CHUNK_ELEMENTS)


def chunks(count: int, vocabulary: int, elements: int) -> list[slice]:
    """`count` rows in parts of at most so many logits, but of one row at least."""
    size = max(1, elements // vocabulary)
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]
