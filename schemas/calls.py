"""How the client of an API asks for a kind of operation and reads it: an entry of its table of kinds."""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
from marshmallow import Schema

from domain.limits import Limits
from domain.operation import Operation
from domain.session import SessionSpec


class RequestContext(NamedTuple):
    """What a request is checked against and completed with: its session, and the server's settings."""

    spec: SessionSpec
    limits: Limits
    horizon: int


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """`body` is the schema of the request, `operation` that of both answers.

    `request` makes the request that is stored from what `body` has loaded; it raises ValidationError. `output` is what
    the answer holds of the result of a COMPLETED operation, and `inline` what it still holds of a large one, which is
    fetched apart; None where results are never large. `summary`, `notes` and the examples are documentation.
    """

    summary: str
    body: type[Schema]
    operation: type[Schema]
    request: Callable[[dict[str, Any], RequestContext], msgspec.Struct]
    output: Callable[[Operation, Any], Any] = lambda _, result: result
    inline: Callable[[Any], dict[str, Any]] | None = None
    name: str = ""
    notes: str = ""
    read_notes: str = ""
    example: dict[str, Any] | None = None
    result_example: dict[str, Any] | None = None
