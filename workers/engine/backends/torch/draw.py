"""A token of each row by torch's operations: temperature, top-k, top-p, then the inverse CDF at one uniform."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import log_softmax, pad

from domain.sample import SamplingParams

BLOCK = 256
# Logits taken at once on a CPU, in elements: what its caches hold of them. A pass over more costs five times as much.
CHUNK_ELEMENTS = 1 << 19

Method = Callable[[Tensor, Sequence[SamplingParams], Tensor], Tensor]


def draw(logits_BV: Tensor, params: Sequence[SamplingParams], uniforms: Sequence[float]) -> tuple[Tensor, Tensor]:
    """As Backend.draw."""
    uniforms_B = torch.tensor(uniforms, dtype=torch.float64, device=logits_BV.device)
    elements = CHUNK_ELEMENTS if logits_BV.device.type == "cpu" else logits_BV.numel()
    size = max(1, elements // logits_BV.shape[1])
    parts = [slice(start, start + size) for start in range(0, len(params), size)]
    drawn = [_draw_chunk(logits_BV[part], params[part], uniforms_B[part]) for part in parts]
    tokens_B, logprobs_B = (torch.cat(column) for column in zip(*drawn, strict=True))
    return tokens_B, logprobs_B


def _draw_chunk(logits_BV: Tensor, params: Sequence[SamplingParams], uniforms_B: Tensor) -> tuple[Tensor, Tensor]:
    logprobs_BV = log_softmax(logits_BV.float(), dim=-1)
    tokens_B = torch.empty(len(params), dtype=torch.int64, device=logits_BV.device)
    methods = [_method(one, logits_BV.shape[1]) for one in params]
    for method in dict.fromkeys(methods):
        rows = [row for row, other in enumerate(methods) if other is method]
        index = torch.tensor(rows, device=logits_BV.device)
        candidates_BV = logprobs_BV if len(rows) == len(params) else logprobs_BV[index]
        tokens_B[index] = method(candidates_BV, [params[row] for row in rows], uniforms_B[index])
    return tokens_B, logprobs_BV.gather(1, tokens_B[:, None])[:, 0]


def _method(params: SamplingParams, vocabulary: int) -> Method:
    if np.float32(params.temperature) == 0:
        return _greedy
    if params.top_p >= 1 and not 0 < params.top_k < vocabulary:
        return _unfiltered
    return _filtered


def _greedy(logprobs_BV: Tensor, params: Sequence[SamplingParams], uniforms_B: Tensor) -> Tensor:  # noqa: ARG001
    # argmax leaves open which of equal logits wins; ours is the lowest id.
    best_BV = logprobs_BV == logprobs_BV.amax(1, keepdim=True)
    ids_V = torch.arange(logprobs_BV.shape[1], device=logprobs_BV.device)
    return torch.where(best_BV, ids_V, len(ids_V) - 1).amin(1)


def _unfiltered(logprobs_BV: Tensor, params: Sequence[SamplingParams], uniforms_B: Tensor) -> Tensor:
    return _inverse_cdf(_tempered(logprobs_BV, params).exp(), uniforms_B)


def _filtered(logprobs_BV: Tensor, params: Sequence[SamplingParams], uniforms_B: Tensor) -> Tensor:
    """top-p keeps the smallest set whose share of the top-k mass reaches top_p, at least one token."""
    vocabulary = logprobs_BV.shape[1]
    sorted_BV, order_BV = _tempered(logprobs_BV, params).sort(dim=1, descending=True, stable=True)
    top_k_B1 = _column([one.top_k if one.top_k > 0 else vocabulary for one in params], logprobs_BV)
    ranks_V = torch.arange(vocabulary, device=logprobs_BV.device)
    mass_BV = sorted_BV.exp().double().masked_fill(ranks_V >= top_k_B1, 0.0)
    mass_BV /= mass_BV.sum(1, keepdim=True)
    mass_before_BV = mass_BV.cumsum(1) - mass_BV
    mass_BV.masked_fill_(mass_before_BV >= _column([one.top_p for one in params], logprobs_BV), 0.0)
    return order_BV.gather(1, _inverse_cdf(mass_BV, uniforms_B)[:, None])[:, 0]


def _tempered(logprobs_BV: Tensor, params: Sequence[SamplingParams]) -> Tensor:
    """Log of unnormalised probabilities, the largest 0: finite at any positive temperature."""
    temperatures_B1 = _column([one.temperature for one in params], logprobs_BV).float()
    return (logprobs_BV - logprobs_BV.amax(1, keepdim=True)) / temperatures_B1


def _column(values: list[float], like: Tensor) -> Tensor:
    return torch.tensor(values, dtype=torch.float64, device=like.device)[:, None]


def _inverse_cdf(mass_BV: Tensor, uniforms_B: Tensor) -> Tensor:
    """The first index whose cumulated mass exceeds uniform * total; an index without mass is never drawn.

    First among the sums of blocks, then inside one block: a cumulated sum in fp64 over the whole
    vocabulary would cost more than the rest of sampling, and in fp32 it loses the small tokens.
    """
    vocabulary = mass_BV.shape[1]
    blocks_BNK = pad(mass_BV, (0, -vocabulary % BLOCK)).view(len(mass_BV), -1, BLOCK)
    sums_BN = blocks_BNK.sum(2).double()
    edges_BN = sums_BN.cumsum(1)
    marks_B1 = uniforms_B[:, None] * edges_BN[:, -1:]
    block_B1 = _first_above(edges_BN, marks_B1)
    rests_B1 = marks_B1 - (edges_BN - sums_BN).gather(1, block_B1)
    inside_BK = blocks_BNK[torch.arange(len(mass_BV), device=mass_BV.device), block_B1[:, 0]].double().cumsum(1)
    return (block_B1 * BLOCK + _first_above(inside_BK, rests_B1))[:, 0].clamp(max=vocabulary - 1)


def _first_above(cumulated_BN: Tensor, marks_B1: Tensor) -> Tensor:
    """Rounding may carry a mark past either end; it is brought back to where there is mass."""
    below_total_B1 = torch.nextafter(cumulated_BN[:, -1:], torch.zeros_like(marks_B1))
    marks_B1 = torch.minimum(marks_B1, below_total_B1).clamp(min=0.0)
    return torch.searchsorted(cumulated_BN, marks_B1, right=True).clamp(max=cumulated_BN.shape[1] - 1)
