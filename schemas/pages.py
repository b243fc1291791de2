"""Query strings: pages of a list, and the absence of any."""

from schemas.base import QuerySchema, RequestSchema
from schemas.bounds import INT32_MAX, Bounds
from schemas.fields import QueryInteger


class PageSchema(QuerySchema):
    limit = QueryInteger(Bounds(1, 100), load_default=20, description="Most entries of the page.")
    offset = QueryInteger(Bounds(0, INT32_MAX), load_default=0, description="Entries to skip.")


class EmptySchema(RequestSchema):
    """A body that may hold nothing, or be left out."""
