"""Running the prompts of sequences that join the decode batch."""

import numpy as np
import torch

from workers.engine.base_model import BaseModel
from workers.engine.kv_cache import KvCache
from workers.engine.lora import routes_of
from workers.engine.sequences import GrowingSequence


def prefill(
    base: BaseModel, cache: KvCache, running: list[GrowingSequence], newcomers: list[GrowingSequence], max_tokens: int
) -> list[GrowingSequence]:
    """Gives the newcomers the cache rows after those of `running`; returns them in the order of their rows.

    A prompt is run once, by the first of its sequences; the others copy it, also from one that is running already.
    """
    if not newcomers:
        return []
    held_by = {sequence.prompt: row for row, sequence in enumerate(running)}
    leaders: list[GrowingSequence] = []
    for sequence in newcomers:
        if sequence.prompt not in held_by:
            held_by[sequence.prompt] = len(running) + len(leaders)
            leaders.append(sequence)
    forks = [sequence for sequence in newcomers if sequence not in leaders]
    cache.reserve(len(running) + len(newcomers), max(sequence.length + 1 for sequence in newcomers))
    if leaders:
        _run(base, cache, leaders, len(running), max_tokens)
    for row, fork in enumerate(forks, start=len(running) + len(leaders)):
        cache.copy_prefix(held_by[fork.prompt], row, len(fork.prompt.tokens))
    return leaders + forks


def _run(base: BaseModel, cache: KvCache, leaders: list[GrowingSequence], first_row: int, max_tokens: int) -> None:
    prompts = [sequence.prompt for sequence in leaders]
    longest = max(len(prompt.tokens) for prompt in prompts)
    padded_PT = np.zeros((len(prompts), longest), np.int64)
    for row, prompt in enumerate(prompts):
        padded_PT[row, : len(prompt.tokens)] = prompt.tokens
    tokens_PT = torch.from_numpy(padded_PT).to(base.device)
    positions_PT = torch.arange(longest, device=base.device).expand(len(prompts), -1)
    routes = routes_of([sequence.sampling.adapter for sequence in leaders], base.device)
    step = max(1, max_tokens // len(prompts))
    for start in range(0, longest, step):
        stop = min(start + step, longest)
        hidden_PQD = base.extend(tokens_PT[:, start:stop], positions_PT[:, start:stop], cache, first_row, stop, routes)
        for row, prompt in enumerate(prompts):
            if start < len(prompt.tokens) <= stop:
                last = len(prompt.tokens) - 1 - start
                prompt.last_hidden_1D = hidden_PQD[row, last : last + 1].clone()
