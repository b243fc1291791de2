"""Prefill: runs the prompts of sequences that join the decode batch."""

import numpy as np
import torch

from workers.engine.adapters.rows import grouped, rows_of
from workers.engine.backends.kv_cache import KvCache, Span
from workers.engine.decoder.forward_pass import ForwardPass
from workers.engine.loading.base_model import BaseModel
from workers.engine.sampling.sequences import GrowingSequence


def prefill(
    base: BaseModel, cache: KvCache, running: list[GrowingSequence], joining: list[GrowingSequence], max_tokens: int
) -> list[GrowingSequence]:
    """Gives the joining sequences the cache rows after those of `running`; returns them in the order of their rows.

    A prompt is run once, for the first of its sequences; the others copy its part of the cache, also from a sequence
    that is running already.
    """
    if not joining:
        return []
    held_by = {sequence.prompt: row for row, sequence in enumerate(running)}
    leaders: list[GrowingSequence] = []
    for sequence in joining:
        if sequence.prompt not in held_by:
            held_by[sequence.prompt] = len(running) + len(leaders)
            leaders.append(sequence)
    forks = [sequence for sequence in joining if sequence not in leaders]
    cache.reserve(len(running) + len(joining), max(sequence.length + 1 for sequence in joining))
    if leaders:
        _run(base, cache, leaders, len(running), max_tokens)
    for row, fork in enumerate(forks, start=len(running) + len(leaders)):
        cache.copy_prefix(held_by[fork.prompt], row, len(fork.prompt.tokens))
    return leaders + forks


def _run(base: BaseModel, cache: KvCache, leaders: list[GrowingSequence], first_row: int, max_tokens: int) -> None:
    """A prompt longer than `max_tokens` comes alone, and is run in parts (chunked prefill)."""
    adapters = [sequence.sampling.adapter for sequence in leaders]
    order = grouped(adapters)
    prompts = [leaders[index].prompt for index in order]
    for start in range(0, max(len(prompt.tokens) for prompt in prompts), max_tokens):
        lengths = [min(len(prompt.tokens) - start, max_tokens) for prompt in prompts]
        spans = [Span(first_row + index, start, start + length) for index, length in zip(order, lengths, strict=True)]
        tokens = [prompt.tokens[span.start : span.stop] for prompt, span in zip(prompts, spans, strict=True)]
        attention = base.backend.span_attention(cache, spans, base.device)
        rows = rows_of([adapters[index] for index in order], lengths)
        tokens_T = torch.from_numpy(np.concatenate(tokens).astype(np.int64)).to(base.device)
        hidden_TD = base.hidden(ForwardPass(tokens_T, attention.positions_T, attention, rows))
        for prompt, hidden_LD in zip(prompts, hidden_TD.split(lengths), strict=True):
            prompt.last_hidden_1D = hidden_LD[-1:].clone()
