"""Stop strings with every kind of tokenizer, against the whole text decoded anew after each token."""

import random
from typing import Any

import numpy as np
import pytest
from transformers import PreTrainedTokenizerFast

from tests.engine.small_tokenizers import small_tokenizers
from workers.engine.sampling.stopping import INCOMPLETE, StopStrings

TOKENIZERS = small_tokenizers()
# Bytes of →, é and 😀, a space and an A: valid, cut short and out of place.
AWKWARD = [0xE2, 0x86, 0x92, 0xC3, 0xA9, 0xF0, 0x9F, 0x98, 0x80, 0x20, 0x41]
SPACED = [name for name, tokenizer in TOKENIZERS.items() if "▁hello" in tokenizer.get_vocab()]


class Counting:
    """A tokenizer that counts the tokens which it has decoded."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        self._tokenizer = tokenizer
        self.decoded = 0

    def decode(self, tokens: list[int], **options: Any) -> Any:
        self.decoded += len(tokens)
        return self._tokenizer.decode(tokens, **options)


def stops_after(tokenizer: Any, prompt: list[int], tokens: list[int], *stops: str) -> int | None:
    """How many tokens it takes until a stop string is complete."""
    watch = StopStrings(stops, tokenizer, np.array(prompt, np.int32))
    return next((count for count, token in enumerate(tokens, 1) if watch.completed_by(token)), None)


def text_of(tokenizer: Any, tokens: list[int]) -> str:
    text: str = tokenizer.decode(tokens, clean_up_tokenization_spaces=False)
    return text.rstrip(INCOMPLETE)


def expected(tokenizer: Any, prompt: list[int], tokens: list[int], stops: tuple[str, ...]) -> int | None:
    """The same from whole texts: what the completion adds to as much of the prompt as is whole."""
    known = max(len(text_of(tokenizer, prompt[:count])) for count in range(len(prompt) + 1))
    texts = (text_of(tokenizer, prompt + tokens[:count])[known:] for count in range(1, len(tokens) + 1))
    return next((count for count, text in enumerate(texts, 1) if any(stop in text for stop in stops)), None)


@pytest.mark.parametrize("name", SPACED)
def test_a_stop_string_s_leading_space_matches_that_of_the_first_token(name: str) -> None:
    tokenizer = TOKENIZERS[name]
    hello, world = tokenizer.convert_tokens_to_ids(["▁hello", "▁world"])
    assert stops_after(tokenizer, [hello], [world], " world") == 1
    assert stops_after(tokenizer, [hello], [hello, world], "o w") == 2
    assert stops_after(tokenizer, [world], [hello], " world") is None


@pytest.mark.parametrize("name", TOKENIZERS)
def test_a_completion_stops_where_its_whole_text_first_has_a_stop_string(name: str) -> None:
    tokenizer, rng, found = TOKENIZERS[name], random.Random(name), 0
    size = len(tokenizer.get_vocab())
    for _ in range(200):
        ids = [rng.randrange(size + 3) for _ in range(rng.choice([2, 4, 8, 20]))]
        if size > len(AWKWARD) + 200 and rng.random() < 0.6:
            ids = rng.sample([*AWKWARD, *range(256, size + 2)], 6)
        prompt, tokens = (
            [rng.choice(ids) for _ in range(rng.choice(lengths))] for lengths in ([1, 5, 12], [5, 20, 60])
        )
        text = text_of(tokenizer, prompt + tokens)
        starts = [rng.randrange(len(text) + 1) for _ in range(3)]
        cuts = [text[start : start + rng.choice([1, 2, 3, 5])] for start in starts]
        stops = (*(cut for cut in cuts if cut and INCOMPLETE not in cut), rng.choice([" world", "→→", "é", "lo w"]))
        count = expected(tokenizer, prompt, tokens, stops)
        assert stops_after(tokenizer, prompt, tokens, *stops) == count, (prompt, tokens, stops)
        found += count is not None
    assert found > 20, "most of what is tried should stop"


@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize("kind", ["continuation bytes", "no text", "cut characters"])
def test_watching_takes_as_much_work_for_each_token_however_many_come(name: str, kind: str) -> None:
    tokenizer = TOKENIZERS[name]
    outside = len(tokenizer) + 1
    merged = tokenizer.get_vocab().get("ĨĴâ", outside)
    token = {"continuation bytes": 0x80 % outside, "no text": outside, "cut characters": merged}[kind]
    counts = []
    for length in (250, 1000):
        counting = Counting(tokenizer)
        assert stops_after(counting, [0xE2 % outside] * 20, [token] * length, "never") is None
        counts.append(counting.decoded)
    assert counts[1] < 4.5 * counts[0]
    assert counts[0] < 60 * 250


def test_a_character_that_begins_in_the_prompt_is_the_completion_s() -> None:
    tokenizer = TOKENIZERS["byte level"]
    assert stops_after(tokenizer, [0x41, 0xE2], [0x86, 0x92], "→") == 2
    assert stops_after(tokenizer, [0x41, 0xE2, 0x86, 0x92], [0x41], "→") is None


def test_bytes_that_are_no_character_stand_between_their_neighbours() -> None:
    tokenizer = TOKENIZERS["byte level"]
    assert stops_after(tokenizer, [0x41], [0x42, *[0x80] * 40, 0x43], "BC") is None
    assert stops_after(tokenizer, [0x41], [*[0x80] * 40, 0x42, 0x43], "BC") == 42
