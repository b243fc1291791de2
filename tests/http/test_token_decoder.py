"""Tokens as text on the console's pages, whatever a model has sampled."""

import random

import pytest
from flask import Flask

from app.console import token_decoder
from tests.engine.small_tokenizers import small_tokenizers

TOKENIZERS = small_tokenizers()


def texts_of(app: Flask, monkeypatch: pytest.MonkeyPatch, name: str, tokens: list[int]) -> list[str]:
    monkeypatch.setattr(token_decoder, "_tokenizer", lambda *_: TOKENIZERS[name].backend_tokenizer)
    with app.app_context():
        made = token_decoder.TokenDecoder("any")
        return [made.next(token) for token in tokens]


def test_bytes_that_make_a_character_are_its_last_one_s_piece(app: Flask, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = [0x41, 0xE2, 0x86, 0x92, 0x41, 0x80, 0x41]
    assert texts_of(app, monkeypatch, "byte level", tokens) == ["A", "", "", "→", "A", "", "\ufffdA"]


@pytest.mark.parametrize("name", TOKENIZERS)
def test_any_tokens_are_shown(app: Flask, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    size, rng = len(TOKENIZERS[name].get_vocab()), random.Random(name)
    for _ in range(50):
        ids = [0x80 % size, 0xC3 % size, 0x92 % size, size - 1, size - 5, size + 1]
        shown = "".join(texts_of(app, monkeypatch, name, [rng.choice(ids) for _ in range(60)]))
        assert shown.count("\ufffd") <= 60


def test_words_keep_the_space_between_them(app: Flask, monkeypatch: pytest.MonkeyPatch) -> None:
    hello, world = TOKENIZERS["llama 2"].convert_tokens_to_ids(["▁hello", "▁world"])
    assert texts_of(app, monkeypatch, "llama 2", [hello, world, 10_000, world]) == ["hello", " world", "", " world"]
