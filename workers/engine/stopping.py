"""When a completion has ended: an end token, or a stop string in its decoded text."""

from typing import Any

# What decoders put for bytes that are no character, or not yet one.
INCOMPLETE = "\ufffd"


class StopStrings:
    """Watches one completion token by token.

    The text is decoded with special tokens and without the prompt. Only the tokens since the last
    whole character are decoded again, after those of the character before, which some decoders need
    as context for a leading space.
    """

    def __init__(self, stops: tuple[str, ...], tokenizer: Any) -> None:
        self._stops = stops
        self._tokenizer = tokenizer
        self._kept = max(map(len, stops)) - 1
        self._tail = ""
        self._context: list[int] = []
        self._pending: list[int] = []

    def completed_by(self, token: int) -> bool:
        """Whether the text contains a stop string once `token` has been added."""
        self._pending.append(token)
        context = self._decode(self._context)
        fresh = self._decode(self._context + self._pending)[len(context) :]
        whole = fresh.rstrip(INCOMPLETE)
        if any(stop in self._tail + whole for stop in self._stops):
            return True
        if fresh and whole == fresh:
            text = self._tail + whole
            self._tail = text[max(0, len(text) - self._kept) :]
            self._context, self._pending = self._pending, []
        return False

    def _decode(self, tokens: list[int]) -> str:
        text: str = self._tokenizer.decode(tokens, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        return text
