"""Stop strings in the decoded text of a completion."""

from typing import Any

import numpy as np

# What decoders return for bytes that are no complete character.
INCOMPLETE = "\ufffd"
# A character has up to four bytes, and each token with text at least one of them.
TOKENS_BEFORE_LAST = 3
# Of the prompt, decoded before a completion as its context.
PROMPT_TOKENS = 16


class StopStrings:
    """Looks for stop strings in one completion, token by token.

    The completion's text is what it adds to the prompt's text, special tokens included: some decoders strip the first
    space of what they are given, and a character may have begun in the prompt. For each new token a few tokens are
    decoded: the last ones that end with a whole character, as context, and those after them.
    """

    def __init__(self, stops: tuple[str, ...], tokenizer: Any, prompt: np.ndarray) -> None:
        self._stops = stops
        self._tokenizer = tokenizer
        self._kept = max(map(len, stops)) - 1
        self._tail = ""  # the end of the text that is whole
        self._context, self._pending = self._split(prompt[-PROMPT_TOKENS:].tolist())
        decoded = self._decode(self._context + self._pending)
        # How many of the decoded characters come before the text of the pending tokens.
        self._known = max(len(text.rstrip(INCOMPLETE)) for text in (self._decode(self._context), decoded))
        self._text = decoded[self._known :]

    def completed_by(self, token: int) -> bool:
        """Whether the text contains a stop string once `token` has been added."""
        text = self._decode([*self._context, *self._pending, token])[self._known :]
        if text == self._text and not self._decode([token, token]):
            return False  # it has no text anywhere
        self._pending.append(token)
        self._text = text
        whole = text.rstrip(INCOMPLETE)
        if any(stop in self._tail + whole for stop in self._stops):
            return True
        if text and whole == text:
            self._keep(whole)
            self._context, self._pending, self._text = self._pending, [], ""
            self._known = len(self._decode(self._context))
        elif len(self._pending) > 2 * TOKENS_BEFORE_LAST + 1:
            self._shorten(whole)
        return False

    def _split(self, tokens: list[int]) -> tuple[list[int], list[int]]:
        """Those up to a whole character, and those after it; none after it where it is too far away."""
        for count in range(len(tokens), len(tokens) - TOKENS_BEFORE_LAST - 1, -1):
            if not self._decode(tokens[:count]).endswith(INCOMPLETE):
                return tokens[:count], tokens[count:]
        return tokens, []

    def _shorten(self, whole: str) -> None:
        """Takes the middle out of a long run of tokens that never end with a character.

        What stays are its last tokens, in which a character may have begun, and its first ones: decoders with byte
        fallback show none of a run's characters when one of its bytes belongs to none.
        """
        del self._pending[TOKENS_BEFORE_LAST + 1 : -TOKENS_BEFORE_LAST]
        decoded, incomplete = self._decode(self._context + self._pending), len(self._text) - len(whole)
        self._known = max(len(decoded.rstrip(INCOMPLETE)), len(decoded) - incomplete)
        self._text = decoded[self._known :]
        self._keep(whole + INCOMPLETE * (incomplete - len(self._text)))

    def _keep(self, text: str) -> None:
        text = self._tail + text
        self._tail = text[max(0, len(text) - self._kept) :]

    def _decode(self, tokens: list[int]) -> str:
        text: str = self._tokenizer.decode(tokens, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        return text
