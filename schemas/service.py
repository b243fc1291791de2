"""What health checks answer."""

from marshmallow import fields

from schemas.base import AnswerSchema


class HealthSchema(AnswerSchema):
    status = fields.String(required=True, metadata={"enum": ["ok"], "description": "Always ok: else an error."})
