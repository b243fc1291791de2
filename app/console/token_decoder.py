"""Decodes a sequence token by token."""

import logging
from functools import lru_cache
from pathlib import Path

from tokenizers import Tokenizer

from app.state import state
from models.tokenizer_file import tokenizer_file

log = logging.getLogger(__name__)

# What decoders put for bytes that are no character, or not yet one, of which a character has at most four.
INCOMPLETE = "\ufffd"
MOST_PENDING = 4


class TokenDecoder:
    """The text that each token of a sequence adds to those before it: nothing for one that ends within a character.
    Without a tokenizer on this host that can be used, the tokens' numbers."""

    def __init__(self, base_model: str) -> None:
        self._tokenizer = _tokenizer(base_model, state().settings.models_dir)
        self._context: list[int] = []
        self._pending: list[int] = []

    @property
    def is_text(self) -> bool:
        return self._tokenizer is not None

    def next(self, token: int) -> str:
        if self._tokenizer is None:
            return f"{token} "
        # Of tokens that never make a character the last few are enough.
        self._pending = [*self._pending, token][-MOST_PENDING:]
        before, text = (
            self._tokenizer.decode(tokens, skip_special_tokens=False)
            for tokens in (self._context, self._context + self._pending)
        )
        piece = text[len(before) :]
        if not piece or (piece.endswith(INCOMPLETE) and len(self._pending) < MOST_PENDING):
            return ""
        self._context, self._pending = self._pending, []
        return piece


@lru_cache(maxsize=16)
def _tokenizer(base_model: str, models_dir: Path | None) -> Tokenizer | None:
    file = tokenizer_file(base_model, models_dir)
    if file is None:
        return None
    try:
        return Tokenizer.from_file(str(file))
    except Exception as error:  # noqa: BLE001 - what the library raises is no narrower
        log.warning("the tokenizer of %s cannot be used: %s", base_model, error)
        return None
