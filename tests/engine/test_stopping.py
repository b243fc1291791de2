from pathlib import Path

import numpy as np
import pytest
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from workers.engine.sampling.stopping import StopStrings


@pytest.fixture(scope="module")
def tokenizer(tiny: Path) -> PreTrainedTokenizerFast:
    return AutoTokenizer.from_pretrained(tiny)


def stops_after(tokenizer: PreTrainedTokenizerFast, tokens: list[int], *stops: str) -> int | None:
    """How many tokens it takes until a stop string is complete."""
    watch = StopStrings(stops, tokenizer, np.array(tokenizer.encode("a prompt")))
    return next((count for count, token in enumerate(tokens, 1) if watch.completed_by(token)), None)


def test_a_stop_string_may_begin_and_end_inside_tokens(tokenizer: PreTrainedTokenizerFast) -> None:
    tokens = tokenizer.encode("say the thing")
    assert [tokenizer.decode([token]) for token in tokens] == ["s", "a", "y", " the", " ", "th", "in", "g"]
    assert stops_after(tokenizer, tokens, "e t") == 6
    assert stops_after(tokenizer, tokens, "y t") == 4
    assert stops_after(tokenizer, tokens, "thing!") is None


def test_the_first_stop_to_appear_wins_whatever_their_order(tokenizer: PreTrainedTokenizerFast) -> None:
    tokens = tokenizer.encode("one two")
    assert stops_after(tokenizer, tokens, "two", "ne") == 3


def test_a_leading_space_matches(tokenizer: PreTrainedTokenizerFast) -> None:
    assert stops_after(tokenizer, tokenizer.encode("at any"), " any") == 5


def test_characters_of_several_bytes_match_when_complete_and_not_before(tokenizer: PreTrainedTokenizerFast) -> None:
    tokens = tokenizer.encode("é→ü")
    assert len(tokens) == 7
    assert stops_after(tokenizer, tokens, "→") == 5
    assert stops_after(tokenizer, tokens, "éx", "ü") == 7


def test_an_incomplete_character_matches_nothing(tokenizer: PreTrainedTokenizerFast) -> None:
    assert stops_after(tokenizer, tokenizer.encode("é")[:1], "\ufffd") is None


def test_text_after_bytes_that_are_no_character_still_matches(tokenizer: PreTrainedTokenizerFast) -> None:
    stray = tokenizer.encode("→")[1:2]
    assert stops_after(tokenizer, stray * 3 + tokenizer.encode("END"), "END") == 4


def test_special_tokens_are_text_too(tokenizer: PreTrainedTokenizerFast) -> None:
    tokens = [*tokenizer.encode("a"), tokenizer.convert_tokens_to_ids("<|im_end|>")]
    assert stops_after(tokenizer, tokens, "<|im_end|>") == 2


def test_a_long_text_is_watched_to_its_end(tokenizer: PreTrainedTokenizerFast) -> None:
    tokens = tokenizer.encode("ab" * 300 + "abc")
    assert stops_after(tokenizer, tokens, "abababc") == len(tokens)
