"""Ids in paths. The colon is not theirs: it begins a verb, as in /training-sessions/abc:sample."""

from typing import Any

from werkzeug.routing import BaseConverter

ID_PATTERN = "[A-Za-z0-9_-]{1,128}"


class IdConverter(BaseConverter):
    """What cannot be an id matches no path, and so is a 404."""

    regex = ID_PATTERN


def id_schema(_: IdConverter) -> dict[str, Any]:
    """How a path parameter of this kind reads in OpenAPI."""
    return {"type": "string", "pattern": f"^{ID_PATTERN}$"}
