"""What is wrong with a request, as short sentences that name a field and never repeat the payload."""

from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from marshmallow import ValidationError

MOST_PROBLEMS = 10
MOST_NAME_CHARACTERS = 64
MOST_PATH_CHARACTERS = 320


class Problem(NamedTuple):
    """`field` is a path such as samples[0].loss_inputs.advantages.data[3]; empty for the body as a whole."""

    field: str
    message: str


def refusal(field: str, sentence: str) -> ValidationError:
    """The error for one field, `field` being its path."""
    return ValidationError({field: [sentence]})


def shorten(name: str, limit: int = MOST_NAME_CHARACTERS) -> str:
    """A name from the outside, cut to a length that an error may carry, with nothing unprintable in it."""
    kept = name if len(name) <= limit else name[: limit - 1] + "…"
    return "".join(character if character.isprintable() else "�" for character in kept)


def first_problems(messages: Any) -> tuple[list[Problem], int]:
    """The first problems in marshmallow's nested messages, and how many more there are."""
    problems = _walk(messages, "")
    first = [Problem(shorten(path, MOST_PATH_CHARACTERS), message) for path, message in islice(problems, MOST_PROBLEMS)]
    return first, sum(1 for _ in problems)


def _walk(messages: Any, path: str) -> Iterator[Problem]:
    if isinstance(messages, dict):
        for key, inner in messages.items():
            yield from _walk(inner, _join(path, key))
    elif isinstance(messages, list):
        for inner in messages:
            yield from _walk(inner, path)
    else:
        yield Problem(path, str(messages))


def _join(path: str, key: str | int) -> str:
    if key == "_schema":
        return path
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{shorten(key)}" if path else shorten(key)
