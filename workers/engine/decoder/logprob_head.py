"""Logprobs of given tokens without the [tokens, vocabulary] logits of a whole batch."""

from typing import Any

import torch
from torch import Tensor

from workers.engine.decoder.head import Head

# Logits held at once, in elements: 64 MiB in fp32. A packed head's product is as fast with fewer, which glibc need not
# ask the system for each time.
CHUNK_ELEMENTS, PACKED_CHUNK_ELEMENTS = 1 << 24, 6 << 20


def target_logprobs(hidden_ND: Tensor, head: Head, targets_N: Tensor) -> tuple[Tensor, Tensor]:
    """fp32 logprobs of `targets_N` and entropies (nats), both [N], of softmax(hidden W^T).

    Log-softmax is taken in fp32 of the raw logits over the whole vocabulary. Only the logprobs are
    differentiable, and only by `hidden_ND`: the head is frozen.
    """
    logprobs_N, entropies_N = _TargetLogprobs.apply(hidden_ND, head, targets_N)
    return logprobs_N, entropies_N


class _TargetLogprobs(torch.autograd.Function):
    """The gradient of a token's logprob by its hidden state does not depend on the loss: it is computed while the
    logits are there, so that backward need not compute them again. It takes as much memory as `hidden_ND`."""

    @staticmethod
    def forward(ctx: Any, hidden_ND: Tensor, head: Head, targets_N: Tensor) -> tuple[Tensor, Tensor]:
        logprobs_N = hidden_ND.new_empty(len(targets_N), dtype=torch.float32)
        entropies_N = torch.empty_like(logprobs_N)
        grad_ND = torch.empty_like(hidden_ND) if ctx.needs_input_grad[0] else None
        # Laid out once for all chunks, and not at all where nothing is differentiated.
        transposed = head.transposed() if grad_ND is not None else None
        for part in head_chunks(len(targets_N), head):
            logits_CV = head.product(hidden_ND[part])
            derivative_CV = None if transposed is None else head.derivative(logits_CV)
            logprobs_N[part], entropies_N[part] = head.backend.target_logprobs(
                logits_CV, targets_N[part], computes_grad=grad_ND is not None
            )
            if derivative_CV is not None:
                logits_CV *= derivative_CV
            if grad_ND is not None and transposed is not None:
                grad_ND[part] = transposed.product(logits_CV)
        ctx.grad_ND = grad_ND
        ctx.mark_non_differentiable(entropies_N)
        return logprobs_N, entropies_N

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        return (ctx.grad_ND * grads[0][:, None]).to(ctx.grad_ND.dtype), None, None


def head_chunks(count: int, head: Head) -> list[slice]:
    """`count` rows in parts whose logits may be held at once, but of one row at least."""
    size = max(1, (PACKED_CHUNK_ELEMENTS if head.is_packed else CHUNK_ELEMENTS) // head.outputs)
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]
