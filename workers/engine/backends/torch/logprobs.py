"""Logprobs and entropies of logits by torch's operations."""

import torch
from torch import Tensor
from torch.nn.functional import softmax


def target_logprobs(logits_CV: Tensor, targets_C: Tensor, computes_grad: bool) -> tuple[Tensor, Tensor]:
    wide_CV = logits_CV.float()
    probabilities_CV = softmax(wide_CV, dim=-1)
    # The likeliest token's probability is never small, so that its log is exact.
    highest_C1, likeliest_C1 = wide_CV.max(1, keepdim=True)
    totals_C1 = highest_C1 - probabilities_CV.gather(1, likeliest_C1).log_()
    logprobs_C1 = wide_CV.gather(1, targets_C[:, None]) - totals_C1
    means_C11 = torch.bmm(probabilities_CV[:, None], wide_CV[:, :, None])
    if computes_grad:
        logits_CV.copy_(probabilities_CV.neg_().scatter_(1, targets_C[:, None], -torch.expm1(logprobs_C1)))
    return logprobs_C1[:, 0], totals_C1[:, 0] - means_C11[:, 0, 0]
