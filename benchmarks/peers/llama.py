"""llama.cpp, in process: one batch of all sequences that decode, a prompt run once for all its samples."""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import llama_cpp as cpp
import numpy as np

from benchmarks.peers import gguf_model
from benchmarks.workloads import Request, Sampling

# Cells of the cache for each sequence, and sequences.
LENGTH, MOST = 256, 64


class Llama:
    """Samples the base model without an adapter, which only helps it. It has no draw that tells a token's logprob, so
    that is numpy's, of all rows at once."""

    def __init__(self, file: Path, threads: int) -> None:
        cpp.llama_backend_init()
        self._model = cpp.llama_model_load_from_file(str(file).encode(), cpp.llama_model_default_params())
        params = cpp.llama_context_default_params()
        params.n_ctx, params.n_seq_max = LENGTH * MOST, MOST
        params.n_batch = params.n_ubatch = 512
        params.n_threads = params.n_threads_batch = threads
        self._context = cpp.llama_init_from_model(self._model, params)
        assert self._context
        self._vocabulary = cpp.llama_vocab_n_tokens(cpp.llama_model_get_vocab(self._model))
        self._batch = cpp.llama_batch_init(params.n_batch, 0, 1)
        self._random = np.random.default_rng(0)

    def sample(self, workload: Sampling) -> int:
        memory = cpp.llama_get_memory(self._context)
        cpp.llama_memory_clear(memory, True)
        active: list[Sequence] = []
        for request in workload.requests:
            active += self._prefilled(memory, request, first=len(active))
        drawn = len(active)
        while active := [one for one in active if one.left]:
            tokens = self._draw(self._run([(one.token, one.place, one.number, True) for one in active]))
            for one, token in zip(active, tokens, strict=True):
                one.go_on(token)
            drawn += len(active)
        return drawn

    def _prefilled(self, memory: Any, request: Request, first: int) -> list["Sequence"]:
        """A request's sequences, with the first token of each."""
        end = len(request.prompt) - 1
        logits_1V = self._run([(token, place, first, place == end) for place, token in enumerate(request.prompt)])
        numbers = range(first, first + request.num_samples)
        for number in numbers[1:]:
            cpp.llama_memory_seq_cp(memory, first, number, -1, -1)
        tokens = self._draw(logits_1V.repeat(len(numbers), 0))
        return [
            Sequence(number, token, end + 1, request.max_tokens - 1)
            for number, token in zip(numbers, tokens, strict=True)
        ]

    def _run(self, entries: list[tuple[int, int, int, bool]]) -> np.ndarray:
        """Logits [wanted ones, vocabulary] of tokens, each with its place, its sequence and whether they are wanted."""
        batch = self._batch
        batch.n_tokens = len(entries)
        for row, (token, place, sequence, wanted) in enumerate(entries):
            batch.token[row], batch.pos[row], batch.logits[row] = token, place, wanted
            batch.n_seq_id[row], batch.seq_id[row][0] = 1, sequence
        assert cpp.llama_decode(self._context, batch) == 0
        shape = (sum(wanted for *_, wanted in entries), self._vocabulary)
        return np.ctypeslib.as_array(cpp.llama_get_logits(self._context), shape=shape)

    def _draw(self, logits_NV: np.ndarray) -> list[int]:
        """By the inverse CDF; with the logprobs, which nobody reads here."""
        shifted_NV = logits_NV - logits_NV.max(1, keepdims=True)
        cumulated_NV = np.exp(shifted_NV).cumsum(1)
        marks_N = self._random.random(len(logits_NV)) * cumulated_NV[:, -1]
        rows = range(len(logits_NV))
        tokens = [int(min(np.searchsorted(cumulated_NV[n], marks_N[n]), self._vocabulary - 1)) for n in rows]
        _ = shifted_NV[rows, tokens] - np.log(cumulated_NV[:, -1])
        return tokens


@dataclass
class Sequence:
    """`token`, drawn and not run yet, comes at `place`; `left` are to be drawn after it."""

    number: int
    token: int
    place: int
    left: int

    def go_on(self, token: int) -> None:
        self.token, self.place, self.left = token, self.place + 1, self.left - 1


def load(model: Path, dtype: str, device: str, threads: int) -> Llama:
    assert device == "cpu", "this is the CPU build"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.gguf"
        gguf_model.write(model, dtype, file)
        return Llama(file, threads)
