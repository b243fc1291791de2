"""A sample request in flight: its prompts and the sequences that are generated from them."""

from concurrent.futures import Future
from functools import cached_property

import numpy as np
from torch import Tensor

from domain.sample import SampleRequest, SampleResult, Sequence, StopReason
from workers.engine.adapters.adapter import Adapter, Published
from workers.engine.commit import answer, fail
from workers.engine.failures import invalid_input
from workers.engine.loading.base_model import BaseModel
from workers.engine.random_keys import uniform_stream
from workers.engine.sampling.stopping import StopStrings


class Prompt:
    """Tokens int32 [T] and, once they have been run, the hidden state of the last, [1, D]."""

    last_hidden_1D: Tensor

    def __init__(self, tokens: np.ndarray) -> None:
        self.tokens = tokens


class GrowingSequence:
    """A completion that is being generated."""

    def __init__(self, sampling: "Sampling", prompt: Prompt, prompt_index: int, sequence_index: int) -> None:
        request = sampling.request
        self.sampling = sampling
        self.prompt = prompt
        self.params = request.params
        self.tokens: list[int] = []
        self.logprobs: list[float] = []
        self._most_tokens = request.room(prompt.tokens)
        self.stop_reason = None if self._most_tokens > 0 else StopReason.LENGTH
        self._uniforms = uniform_stream(request.seed, prompt_index, sequence_index)

    @property
    def length(self) -> int:
        return len(self.prompt.tokens) + len(self.tokens)

    @property
    def reserved_length(self) -> int:
        """The most tokens that it may have, with its prompt."""
        return len(self.prompt.tokens) + self._most_tokens

    def next_uniform(self) -> float:
        return self._uniforms.random()

    def append(self, token: int, logprob: float) -> None:
        self.tokens.append(token)
        self.logprobs.append(logprob)
        if token in self.sampling.end_tokens or (self._stops and self._stops.completed_by(token)):
            self.stop_reason = StopReason.STOP
        elif len(self.tokens) == self._most_tokens:
            self.stop_reason = StopReason.LENGTH

    @cached_property
    def _stops(self) -> StopStrings | None:
        if not self.params.stop:
            return None
        return StopStrings(self.params.stop, self.sampling.base.tokenizer, self.prompt.tokens)

    def result(self) -> Sequence:
        assert self.stop_reason is not None
        return Sequence(np.array(self.tokens, np.int32), np.array(self.logprobs, np.float32), self.stop_reason)


class Sampling:
    """A request and its future; the sequences are prompt-major, as in the result.

    Raises:
        OperationFailedError: INVALID_INPUT, for stop strings without a tokenizer, or tokens outside the vocabulary.
    """

    def __init__(
        self,
        session_id: str,
        request: SampleRequest,
        adapter: Adapter | Published,
        base: BaseModel,
        future: "Future[SampleResult]",
    ) -> None:
        if request.params.stop and base.tokenizer is None:
            raise invalid_input(f"Stop strings need a tokenizer: {base.tokenizer_fault}. Stop on token ids instead.")
        for prompt in request.prompts:
            base.check_tokens(prompt, "a prompt")
        self.session_id, self.request = session_id, request
        self.adapter, self.base = adapter, base
        self.future = future
        self.end_tokens = base.end_tokens.union(request.params.stop_token_ids)
        self.sequences = [
            GrowingSequence(self, prompt, prompt_index, sequence_index)
            for prompt_index, prompt in enumerate(map(Prompt, request.prompts))
            for sequence_index in range(request.num_samples)
        ]

    @property
    def unfinished(self) -> list[GrowingSequence]:
        return [sequence for sequence in self.sequences if not sequence.stop_reason]

    @property
    def has_begun(self) -> bool:
        return any(sequence.tokens for sequence in self.sequences)

    def finish_if_done(self) -> None:
        if self.sequences and not self.unfinished:
            sequences = tuple(sequence.result() for sequence in self.sequences)
            answer(self.future, SampleResult(sequences, self.adapter.step, len(self.request.prompts)))
            self.release()

    def fail(self, error: Exception) -> None:
        fail(self.future, error)
        self.release()

    def release(self) -> None:
        """Breaks the reference cycle with the sequences, which would keep the adapter's memory until a collection."""
        self.sequences = []
