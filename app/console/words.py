"""Tokens as words with a shade: of how surprising each was, or of its advantage."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from app.console.token_decoder import TokenDecoder

SHADES = 5
# A logprob of this or less has the deepest shade: about 1 in 150.
DEEPEST_LOGPROB = -5.0


class Word(NamedTuple):
    """One token. `shade` names a class of the style sheet; `value` is what it stands for, None where there is none."""

    text: str
    token: int
    value: float | None
    shade: str


def plain(decoder: TokenDecoder, tokens: Sequence[int]) -> list[Word]:
    return [Word(decoder.next(token), token, None, "") for token in tokens]


def by_logprob(decoder: TokenDecoder, tokens: Sequence[int], logprobs: Sequence[float]) -> list[Word]:
    """The less likely, the deeper."""
    return [
        Word(decoder.next(token), token, logprob, f"rare-{_level(logprob / DEEPEST_LOGPROB)}")
        for token, logprob in zip(tokens, logprobs, strict=True)
    ]


def by_advantage(
    decoder: TokenDecoder, tokens: Sequence[int], advantages: Sequence[float], trained: Sequence[bool]
) -> Iterator[Word]:
    """The larger beside the others of the sample, the deeper; apart by sign. What is not trained on is left out."""
    largest = max(
        (abs(value) for value, is_trained in zip(advantages, trained, strict=True) if is_trained), default=0.0
    )
    for token, advantage, is_trained in zip(tokens, advantages, trained, strict=True):
        text = decoder.next(token)
        if is_trained:
            sign = "good" if advantage >= 0 else "bad"
            yield Word(text, token, advantage, f"{sign}-{_level(abs(advantage) / largest if largest else 0.0)}")
        else:
            yield Word(text, token, None, "masked")


def _level(share: float) -> int:
    """0 to SHADES, for a share of 0 to 1."""
    return min(SHADES, max(0, math.ceil(share * SHADES)))
