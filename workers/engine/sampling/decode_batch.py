"""The sequences that decode together on one base model (continuous batching): admit, run, postprocess."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from workers.engine.adapters.rows import grouped, rows_of
from workers.engine.backends.kv_cache import KvCache
from workers.engine.backends.torch.stacked import StackedAdaptersCache
from workers.engine.decoder.forward_pass import ForwardPass
from workers.engine.device.available_memory import total_bytes
from workers.engine.failures import as_failure, non_finite, out_of_memory
from workers.engine.loading.base_model import BaseModel
from workers.engine.sampling.prefill import prefill
from workers.engine.sampling.queue import SequenceQueue
from workers.engine.sampling.sequences import GrowingSequence, Sampling
from workers.engine.utilization import Utilization

# Sequences that each session may have running even when the batch is full.
ALWAYS_PLACED = 2


class DecodeBatch:
    """Sequences of any request, session and adapter share each forward pass; they join and leave at any step.

    Row b of the cache holds `running[b]`: all of its tokens but the newest, which the next step writes.
    """

    def __init__(self, base: BaseModel, prefill_tokens: int, max_sequences: int, utilization: Utilization) -> None:
        """`utilization` counts the sequences of each step."""
        self._base = base
        self._prefill_tokens = prefill_tokens
        self._max_sequences, self._utilization = max_sequences, utilization
        self._cache, self._stacks = KvCache(), StackedAdaptersCache()
        self._cache_tokens = _cache_budget(base.device) // base.kv_bytes_per_token
        self._waiting = SequenceQueue()
        self._running: list[GrowingSequence] = []

    def add(self, sampling: Sampling) -> None:
        """Raises OperationFailedError when one of its sequences would not fit in the cache even alone."""
        longest = max((sequence.reserved_length for sequence in sampling.unfinished), default=0)
        if longest > self._cache_tokens:
            raise out_of_memory(f"A sequence of {longest} tokens does not fit; this device holds {self._cache_tokens}.")
        self._waiting.add(sampling)
        sampling.finish_if_done()

    @torch.no_grad()
    def advance(self) -> bool:
        """Generates a token of every running sequence; returns whether there is more to do."""
        joining = self._admit()
        before = len(self._running)
        self._running += joining
        hiddens = [self._decode(self._running[:before])] if before else []
        hiddens += [sequence.prompt.last_hidden_1D for sequence in joining]
        if hiddens:
            self._utilization.add(len(self._running))
            self._postprocess(self._base.logits(torch.cat(hiddens)))
        if not self._running:
            self._clear()
        return bool(self._running or self._waiting)

    def fail(self, error: Exception) -> None:
        """Fails all requests in flight, since the pass that they shared failed."""
        self.abandon(lambda _: True, error)
        self._clear()

    def _clear(self) -> None:
        self._cache.clear()
        self._stacks.clear()

    def abandon(self, is_meant: Callable[[Sampling], bool], error: Exception) -> None:
        """Fails the requests for which `is_meant` is true, running and waiting."""
        for sampling in {sequence.sampling for sequence in [*self._running, *self._waiting]}:
            if is_meant(sampling):
                self._drop(sampling, error)

    def _admit(self) -> list[GrowingSequence]:
        joining = self._choose()
        try:
            return prefill(self._base, self._cache, self._running, joining, self._prefill_tokens)
        except Exception as error:  # noqa: BLE001 - only the joining ran, so only they fail
            self._cache.wipe_from(len(self._running))
            for sampling in {sequence.sampling for sequence in joining}:
                self._drop(sampling, as_failure(error))
            return []

    def _choose(self) -> list[GrowingSequence]:
        """The sequences that join now: as many as fit in the batch, in the cache and in one pass of prompt tokens."""
        chosen: list[GrowingSequence] = []
        while self._waiting:
            sequence = self._waiting.first([*self._running, *chosen])
            if not self._has_room(sequence, [*self._running, *chosen]):
                break
            if not self._fits([*self._running, *chosen, sequence]) or not self._is_one_pass([*chosen, sequence]):
                break
            self._waiting.remove(sequence)
            chosen.append(sequence)
        return chosen

    def _has_room(self, sequence: GrowingSequence, running: list[GrowingSequence]) -> bool:
        """Whether the batch has room; for a session with few running sequences always, so that it does not wait for the
        long sequences of others."""
        own = sum(other.sampling.session_id == sequence.sampling.session_id for other in running)
        return len(running) < self._max_sequences or own < ALWAYS_PLACED

    def _fits(self, sequences: list[GrowingSequence]) -> bool:
        return len(sequences) * max(sequence.reserved_length for sequence in sequences) <= self._cache_tokens

    def _is_one_pass(self, sequences: list[GrowingSequence]) -> bool:
        lengths = [len(prompt.tokens) for prompt in {sequence.prompt for sequence in sequences}]
        return len(lengths) == 1 or sum(lengths) <= self._prefill_tokens

    def _decode(self, running: list[GrowingSequence]) -> Tensor:
        """Hidden states [B, D] after the newest token of each."""
        adapters = [sequence.sampling.adapter for sequence in running]
        order = grouped(adapters)
        device = self._base.device
        tokens_B = torch.tensor([running[row].tokens[-1] for row in order], device=device)
        positions_B = torch.tensor([running[row].length - 1 for row in order], device=device)
        self._cache.reserve(len(running), max(sequence.length for sequence in running))
        attention = self._base.backend.decode_attention(self._cache, order, positions_B)
        adapters = [adapters[row] for row in order]
        rows = rows_of(adapters, [1] * len(adapters))
        stacked = None if self._base.head.is_packed else self._stacks.stack(adapters, self._base.dtype, device)
        hidden_BD = self._base.hidden(ForwardPass(tokens_B, positions_B, attention, rows, stacked))
        return hidden_BD[attention.order_B]

    def _postprocess(self, logits_BV: Tensor) -> None:
        uniforms = [sequence.next_uniform() for sequence in self._running]
        tokens_B, logprobs_B = self._base.backend.draw(
            logits_BV, [sequence.params for sequence in self._running], uniforms
        )
        tokens, logprobs = tokens_B.tolist(), logprobs_B.tolist()
        diverged = {
            s.sampling for s, logprob in zip(self._running, logprobs, strict=True) if not math.isfinite(logprob)
        }
        # From the last row down, since the last row moves to a freed one.
        for row in reversed(range(len(tokens))):
            sequence = self._running[row]
            sequence.append(tokens[row], logprobs[row])
            if sequence.stop_reason and sequence.sampling not in diverged:
                self._remove(row)
                sequence.sampling.finish_if_done()
        for sampling in diverged:
            self._drop(sampling, non_finite("The model's logits are not finite: the adapter has diverged."))

    def _remove(self, row: int) -> None:
        last = len(self._running) - 1
        self._cache.remove_row(row, last)
        self._running[row] = self._running[last]
        self._running.pop()

    def _drop(self, sampling: Sampling, error: Exception) -> None:
        self._waiting.abandon(sampling)
        for row in reversed(range(len(self._running))):
            if self._running[row].sampling is sampling:
                self._remove(row)
        sampling.fail(error)


def _cache_budget(device: torch.device) -> int:
    """Bytes for the cache: half of a GPU's free memory, or half of what this process may use on a CPU."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0] // 2
    return total_bytes() // 2
