"""JSON by orjson: numpy arrays are written as they are, and nothing but strict JSON comes out."""

from typing import Any

import orjson
from flask import Response
from flask.json.provider import JSONProvider as FlaskJSONProvider

JSON = "application/json"


class JSONProvider(FlaskJSONProvider):
    def dumps(self, obj: Any, **_: Any) -> str:
        return write(obj).decode()

    def loads(self, s: str | bytes, **_: Any) -> Any:
        return orjson.loads(s)

    def response(self, *args: Any, **kwargs: Any) -> Response:
        return json_response(write(self._prepare_response_obj(args, kwargs)))


def write(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)


def json_response(body: bytes, status: int = 200) -> Response:
    return Response(body, status=status, mimetype=JSON)
