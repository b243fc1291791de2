"""Large bodies, sent ahead of their request, and large results, fetched apart."""

from marshmallow import fields

from schemas.base import AnswerSchema
from schemas.operations import identifier


def url(description: str) -> fields.String:
    return fields.String(required=True, metadata={"description": description, "format": "uri"})


def payload_id() -> fields.String:
    return fields.String(
        metadata={"description": "An uploaded JSON object, whose fields stand in place of those of the body."}
    )


def apart_id() -> fields.String:
    return fields.String(
        metadata={
            "description": "Only of a large result: the rest of it is to be had by payloads/{payload_id}/download-url."
        }
    )


class UploadSchema(AnswerSchema):
    payload_id = identifier("What payload_id of the operation's body takes.")
    upload_url = url("Where the body is to be PUT, without a key.")


class DownloadSchema(AnswerSchema):
    download_url = url("Where the rest of the result can be had, without a key.")
