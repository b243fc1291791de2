"""A blueprint of Together's API, and what its views share."""

from typing import Any, TypeVar

import msgspec
from flask import Request
from marshmallow import Schema, ValidationError
from werkzeug.datastructures import MultiDict

from app.answers import write
from app.auth import caller, own_session
from app.blueprint import Blueprint as NativeBlueprint
from app.bodies import Parser, hold
from app.state import state
from domain.operation import Operation
from domain.session import Dialect
from schemas.body_struct import value_of
from schemas.problems import refusal
from schemas.together.pages import SomeOf

PREFIX = "/together/v1/rl"
SESSIONS = f"{PREFIX}/training-sessions"

T = TypeVar("T", bound=msgspec.Struct)


class PayloadParser(Parser):
    """Takes a large body from where it was uploaded."""

    def load_json(self, req: Request, schema: Schema) -> Any:
        body = super().load_json(req, schema)
        if "payload_id" not in schema.fields or not isinstance(body, dict):
            return body
        payload_id = value_of(None, body.pop("payload_id", None))
        if payload_id is None:
            return body
        assert req.view_args is not None
        session, uploads = own_session(req.view_args["session_id"], Dialect.TOGETHER), state().store.uploads
        hold(uploads.size(session.id, str(payload_id)))
        uploaded = self._read_payload(uploads.get(session.id, str(payload_id)), schema)
        return {**body, **uploaded}

    def _read_payload(self, text: bytes, schema: Schema) -> dict[str, Any]:
        try:
            uploaded = self.read_json(text, schema, "what was uploaded")
        except ValidationError as error:
            if isinstance(error.messages, list):
                raise ValidationError({"payload_id": error.messages}) from error
            raise
        if not isinstance(uploaded, dict):
            raise refusal("payload_id", "what was uploaded is not a JSON object")
        return uploaded

    def load_querystring(self, req: Request, schema: Schema) -> Any:
        """Lists may be repeated parameters, as generated clients send them, or one with commas."""
        lists = {name for name, field in schema.fields.items() if isinstance(field, SomeOf)}
        joined = {name: ",".join(req.args.getlist(name)) for name in lists & req.args.keys()}
        once = MultiDict([(name, value) for name, value in req.args.items(multi=True) if name not in lists])
        return {**self.query_once(once), **joined}


class Blueprint(NativeBlueprint):
    ARGUMENTS_PARSER = PayloadParser()


def apart(operation: Operation, schema: Schema, output: dict[str, Any], inline: dict[str, Any]) -> dict[str, Any]:
    """The output itself, or when it is large what stays inline, and where the whole was put in `schema`'s form."""
    if len(write(output)) <= state().settings.inline_bytes:
        return output
    uploads = state().store.uploads
    uploads.put(uploads.path(operation.session_id, operation.id), write(schema.dump(output)))
    return {**inline, "payload_id": operation.id}


def is_mine(created_by: str | None) -> bool:
    """Whether a list for this creator shows what the caller has made, which is all that it can show."""
    return created_by in (None, "me", caller())
