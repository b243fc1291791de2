"""A blueprint whose routes share what every route here does: strict queries, idempotent POSTs, documented refusals."""

from collections.abc import Callable
from functools import reduce
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import flask_smorest

from app.bodies import Parser, without_query
from app.idempotency import idempotent

View = Callable[..., Any]

ANY_CALL = (HTTPStatus.BAD_REQUEST, HTTPStatus.INTERNAL_SERVER_ERROR)
KEYED_CALL = (
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.SERVICE_UNAVAILABLE,
)
POST_CALL = (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY)


class Blueprint(flask_smorest.Blueprint):
    ARGUMENTS_PARSER = Parser()

    if TYPE_CHECKING:

        def arguments(self, schema: Any, **options: Any) -> Callable[[View], View]: ...
        def response(self, status_code: int, schema: Any = None, **options: Any) -> Callable[[View], View]: ...
        def doc(self, **options: Any) -> Callable[[View], View]: ...

    def route(self, rule: str, *, methods: tuple[str, ...] = ("GET",), **options: Any) -> Callable[[View], View]:
        """Registers a view for one method; its name in camel case becomes the operationId."""

        def decorator(view: View) -> View:
            view = self.doc(operationId=_camel(view.__name__))(view)
            if not _takes(view, "query"):
                view = without_query(view)
            if {"POST", "PATCH"} & set(methods):
                view = self._post(view)
            if "security" not in view._apidoc["manual_doc"]:  # type: ignore[attr-defined]
                view = self.refuses(*KEYED_CALL)(view)
            if "<id:" in (self.url_prefix or "") + rule:
                view = self.refuses(HTTPStatus.NOT_FOUND)(view)
            return super_route(self.refuses(*ANY_CALL)(view))

        super_route: Callable[[View], View] = super().route(rule, methods=methods, **options)
        return decorator

    def refuses(self, *statuses: int) -> Callable[[View], View]:
        """Documents errors that a view may answer with."""
        documented = [self.alt_response(int(status), response=HTTPStatus(status).name) for status in statuses]
        return lambda view: reduce(lambda inner, decorate: decorate(inner), documented, view)

    def _post(self, view: View) -> View:
        view = self.doc(parameters=["IdempotencyKey"])(view)
        if _takes(view, "json"):
            view = self.refuses(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)(view)
        return idempotent(self.refuses(*POST_CALL)(view))


def named(name: str, *paragraphs: str) -> Callable[[View], View]:
    """Gives a view that a function has made its name, from which the operationId comes, and its documentation."""

    def decorator(view: View) -> View:
        view.__name__, view.__doc__ = name, "\n\n".join(filter(None, paragraphs))
        return view

    return decorator


def _takes(view: View, location: str) -> bool:
    documented = getattr(view, "_apidoc", {}).get("arguments", {}).get("parameters", [])
    return any(parameter["in"] == location for parameter in documented)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
