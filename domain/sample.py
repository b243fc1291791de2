"""The sample operation: completions of prompts, with raw logprobs."""

from enum import StrEnum

import msgspec
import numpy as np


class StopReason(StrEnum):
    STOP = "stop"
    LENGTH = "length"


class SamplingParams(msgspec.Struct, frozen=True, kw_only=True):
    """How tokens are drawn. Temperature 0 is greedy; top_k below 1 is off; top_p 1 is off.

    A completion ends with a token of `stop_token_ids`, as with the model's own end tokens, and with a string of `stop`.
    """

    max_tokens: int = 100
    temperature: float = 1.0
    top_k: int = -1
    top_p: float = 1.0
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()


class SampleRequest(msgspec.Struct, frozen=True, kw_only=True):
    """`num_samples` completions of each prompt.

    A prompt is an int32 array [T], T >= 1. `seed` is always set (one is drawn when the
    user gave none), so that a repeated run of the operation gives the same tokens. `prompt_logprobs` asks for the
    logprobs of the prompts' own tokens, `topk_prompt_logprobs` for so many likeliest tokens in their places.
    Where prompt and completion reach `max_length` tokens the completion ends, whatever `max_tokens` says.
    """

    prompts: tuple[np.ndarray, ...]
    num_samples: int
    params: SamplingParams
    seed: int
    prompt_logprobs: bool = False
    topk_prompt_logprobs: int = 0
    max_length: int | None = None

    def room(self, prompt: np.ndarray) -> int:
        """The most tokens that a completion of `prompt` may have."""
        most = self.params.max_tokens
        return most if self.max_length is None else min(most, self.max_length - len(prompt))


class Sequence(msgspec.Struct, frozen=True):
    """One completion: int32 tokens [T] without the prompt, their float32 raw logprobs [T]."""

    tokens: np.ndarray
    logprobs: np.ndarray
    stop_reason: StopReason


class SampleResult(msgspec.Struct, frozen=True):
    """Prompt-major: the `num_samples` sequences of prompt 0, then of prompt 1, ...

    `step` is that of the weights which sampled them; `prompts` has one entry per prompt if they were scored.
    """

    sequences: tuple[Sequence, ...]
    step: int = 0
    num_prompts: int = 1
    prompts: tuple["ScoredPrompt", ...] = ()


class ScoredPrompt(msgspec.Struct, frozen=True):
    """What the model thought of a prompt of T tokens.

    `logprobs` float32 [T]: entry t is that of token t after those before it, entry 0 is 0. `top_tokens` int32 and
    `top_logprobs` float32, [(T - 1) top]: the likeliest tokens at 1, at 2, ..., the likeliest first.
    """

    logprobs: np.ndarray
    top: int
    top_tokens: np.ndarray
    top_logprobs: np.ndarray
