"""Pages by cursor: `after` is the id of the last entry of the page before."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import dropwhile, islice
from typing import Any, Protocol, TypeVar

from marshmallow import ValidationError, fields

from schemas.base import AnswerSchema, QuerySchema
from schemas.bounds import Bounds
from schemas.fields import QueryInteger
from schemas.problems import refusal

ME = "me"


class Identified(Protocol):
    @property
    def id(self) -> str: ...


T = TypeVar("T", bound=Identified)


class CursorSchema(QuerySchema):
    after = fields.String(metadata={"description": "Only what comes after the entry of this id."})
    limit = QueryInteger(Bounds(1, 100), load_default=20, description="Most entries of the page.")


class CreatedSchema(CursorSchema):
    created_by = fields.String(metadata={"description": "Only what this API key made: its id, or me."})


class SomeOf(fields.Field[frozenset[Any]]):
    """Names in a query string, separated by commas or repeated."""

    def __init__(self, choices: Mapping[str, Any], *, description: str) -> None:
        self.choices = choices
        schema = {"type": "array", "items": {"type": "string", "enum": list(choices)}, "description": description}
        super().__init__(metadata=schema, load_default=None)

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> frozenset[Any]:
        names = str(value).split(",")
        if not set(names) <= set(self.choices):
            raise ValidationError(f"must be some of {', '.join(self.choices)}")
        return frozenset(self.choices[name] for name in names)


class MetaSchema(AnswerSchema):
    has_more = fields.Boolean(required=True, metadata={"description": "Whether there are entries after these."})
    limit = fields.Integer(required=True, metadata={"description": "Most entries of a page.", "examples": [20]})
    next_cursor = fields.String(required=True, metadata={"description": "What after takes next, or empty."})


def page(newest: Iterable[T], query: dict[str, Any], keep: Callable[[T], bool], view: Callable[[T], Any]) -> Any:
    """A page of those that are to be kept. Raises ValidationError when `after` names none of the newest."""
    after, limit = query.get("after"), query["limit"]
    rest = iter(newest) if after is None else _following(after, newest)
    found = [*islice(filter(keep, rest), limit + 1)]
    shown, has_more = found[:limit], len(found) > limit
    meta = {"has_more": has_more, "limit": limit, "next_cursor": shown[-1].id if has_more else ""}
    return {"data": [view(entry) for entry in shown], "meta": meta}


def _following(after: str, newest: Iterable[T]) -> Iterator[T]:
    """An empty page would look like the end of the list."""
    rest = dropwhile(lambda entry: entry.id != after, newest)
    if next(rest, None) is None:
        raise refusal("after", "is not in this list, or not any more; begin again without it")
    return rest
