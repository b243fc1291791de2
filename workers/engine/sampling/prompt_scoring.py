"""Logprobs of prompts: of their own tokens, and of the likeliest tokens at each position."""

from collections import deque
from concurrent.futures import Future

import numpy as np
import torch
from torch import Tensor

from domain.sample import SampleRequest, ScoredPrompt
from workers.engine.adapters.adapter import Adapter, Published
from workers.engine.adapters.rows import AdapterRows
from workers.engine.backends.attention_layer import whole
from workers.engine.commit import answer, fail
from workers.engine.decoder.forward_pass import ForwardPass
from workers.engine.decoder.logprob_head import head_chunks
from workers.engine.loading.base_model import BaseModel


class PromptScoring:
    """Runs one prompt at a time, its logits in chunks. Only reads the weights."""

    def __init__(
        self,
        session_id: str,
        request: SampleRequest,
        adapter: Adapter | Published,
        base: BaseModel,
        future: "Future[tuple[ScoredPrompt, ...]]",
    ) -> None:
        for prompt in request.prompts:
            base.check_tokens(prompt, "a prompt")
        self.session_id, self.future = session_id, future
        self._adapter, self._base = adapter, base
        self._top = request.topk_prompt_logprobs
        self._left = deque(request.prompts)
        self._scored: list[ScoredPrompt] = []

    @property
    def has_begun(self) -> bool:
        return bool(self._scored)

    def advance(self) -> bool:
        """Scores a prompt; returns whether there are more."""
        self._scored.append(self._score(self._left.popleft()))
        if self._left:
            return True
        answer(self.future, tuple(self._scored))
        return False

    def fail(self, error: Exception) -> None:
        fail(self.future, error)

    @torch.inference_mode()
    def _score(self, prompt: np.ndarray) -> ScoredPrompt:
        tokens_T = torch.from_numpy(prompt.astype(np.int64)).to(self._base.device)
        length, positions_T = len(tokens_T), torch.arange(len(tokens_T), device=tokens_T.device)
        attention = self._base.backend.attention(whole([length]))
        rows = [AdapterRows(self._adapter, slice(0, length))]
        hidden_TD = self._base.hidden(ForwardPass(tokens_T, positions_T, attention, rows))
        # A token is predicted by the one before it.
        parts = [
            self._score_rows(hidden_TD[part], tokens_T[1:][part]) for part in head_chunks(length - 1, self._base.head)
        ]
        logprobs, top_tokens, top_logprobs = (
            np.concatenate([empty, *(part[place].flatten().cpu().numpy() for part in parts)]).astype(empty.dtype)
            for place, empty in enumerate((np.zeros(1, np.float32), np.zeros(0, np.int32), np.zeros(0, np.float32)))
        )
        return ScoredPrompt(logprobs=logprobs, top=self._top, top_tokens=top_tokens, top_logprobs=top_logprobs)

    def _score_rows(self, hidden_CD: Tensor, next_C: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Logprobs [C] of the next tokens, as the trainer computes them; the likeliest tokens and theirs, [C, top]."""
        logits_CV = self._base.logits(hidden_CD)
        logprobs_C, _ = self._base.backend.target_logprobs(logits_CV, next_C)
        values_CK, tokens_CK = logits_CV.topk(min(self._top, self._base.vocab_size))
        if not self._top:
            return logprobs_C, tokens_CK, logprobs_C.new_empty(len(next_C), 0)
        highest_C, _ = self._base.backend.target_logprobs(logits_CV, tokens_CK[:, 0])
        return logprobs_C, tokens_CK, highest_C[:, None] + (values_CK.float() - values_CK[:, :1].float())
