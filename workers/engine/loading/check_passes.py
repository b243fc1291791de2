"""The passes by which a loaded model is checked: over whole sequences, and from a cache, as in sampling."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor

from workers.engine.backends.attention_layer import whole
from workers.engine.backends.backend import Backend
from workers.engine.backends.kv_cache import KvCache, Span
from workers.engine.decoder.forward_pass import ForwardPass

# The last tokens of a cached sequence, which are decoded one by one.
STEPS = 4

Hidden = Callable[[ForwardPass], Tensor]


def whole_pass(hidden: Hidden, sequences: Sequence[Tensor], backend: Backend) -> list[Tensor]:
    """Hidden states of each sequence, from one pass over all of them."""
    lengths = [len(tokens_T) for tokens_T in sequences]
    positions_T = torch.cat([torch.arange(length, device=sequences[0].device) for length in lengths])
    forward_pass = ForwardPass(torch.cat(list(sequences)), positions_T, backend.attention(whole(lengths)))
    return list(hidden(forward_pass).split(lengths))


def cached_passes(hidden: Hidden, sequences: Sequence[Tensor], backend: Backend) -> tuple[list[Tensor], int]:
    """Hidden states of each sequence, from halves of them and then single tokens; and the bytes of a cached token."""
    cache, device = KvCache(), sequences[0].device
    cache.reserve(len(sequences), max(map(len, sequences)))
    found: list[list[Tensor]] = [[] for _ in sequences]
    spans_of = [_spans(row, len(tokens_T)) for row, tokens_T in enumerate(sequences)]
    for spans in zip(*spans_of, strict=True):
        tokens_T = torch.cat([sequences[span.row][span.start : span.stop] for span in spans])
        together = backend.span_attention(cache, spans, device)
        positions_T = together.positions_T
        is_step = all(span.length == 1 for span in spans)
        rows = [span.row for span in spans]
        attention = backend.decode_attention(cache, rows, positions_T) if is_step else together
        hidden_TD = hidden(ForwardPass(tokens_T, positions_T, attention))
        for span, part in zip(spans, hidden_TD.split([span.length for span in spans]), strict=True):
            found[span.row].append(part)
    return [torch.cat(parts) for parts in found], cache.bytes_per_token


def _spans(row: int, length: int) -> list[Span]:
    steps = min(STEPS, length - 2)
    borders = [0, (length - steps) // 2, *range(length - steps, length + 1)]
    return [Span(row, *border) for border in pairwise(borders)]
