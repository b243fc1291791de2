"""The sample operation: completions of prompts, with raw logprobs."""

from enum import StrEnum

import msgspec
import numpy as np


class StopReason(StrEnum):
    STOP = "stop"
    LENGTH = "length"


class SamplingParams(msgspec.Struct, frozen=True, kw_only=True):
    """How tokens are drawn. Temperature 0 is greedy; top_k below 1 is off; top_p 1 is off."""

    max_tokens: int = 100
    temperature: float = 1.0
    top_k: int = -1
    top_p: float = 1.0
    stop: tuple[str, ...] = ()


class SampleRequest(msgspec.Struct, frozen=True, kw_only=True):
    """`num_samples` completions of each prompt.

    A prompt is an int32 array [T], T >= 1. `seed` is always set (the door draws one when the
    user gave none), so that a repeated run of the operation gives the same tokens.
    """

    prompts: tuple[np.ndarray, ...]
    num_samples: int
    params: SamplingParams
    seed: int


class Sequence(msgspec.Struct, frozen=True):
    """One completion: int32 tokens [T] without the prompt, their float32 raw logprobs [T]."""

    tokens: np.ndarray
    logprobs: np.ndarray
    stop_reason: StopReason


class SampleResult(msgspec.Struct, frozen=True):
    """Prompt-major: the `num_samples` sequences of prompt 0, then of prompt 1, ..."""

    sequences: tuple[Sequence, ...]
