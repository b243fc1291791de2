"""What a session is called: its display name, and the run of Weights & Biases that it belongs to."""

from typing import Any

from marshmallow import fields, post_load, validate

from domain.session import Labels
from schemas.base import AnswerSchema, RequestSchema

MOST_CHARACTERS = 1024


def text(description: str) -> fields.String:
    length = validate.Length(max=MOST_CHARACTERS, error="must have at most {max} characters")
    return fields.String(validate=length, metadata={"description": description})


class WandbSchema(RequestSchema):
    entity = text("Who the project belongs to.")
    group = text("A group of runs.")
    project = text("The project.")
    run_id = text("The run's id.")
    run_name = text("The run's name.")
    url = text("The run's page.")


class MetadataSchema(RequestSchema):
    wandb = fields.Nested(WandbSchema, load_default=dict)


class LabelsSchema(RequestSchema):
    """Fields that are absent stay as they are; an empty string clears one."""

    display_name = text("What the session is called.")
    metadata = fields.Nested(MetadataSchema)

    @post_load
    def flatten(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        return {**data, "metadata": data.get("metadata", {}).get("wandb", {})}


class WandbAnswerSchema(AnswerSchema):
    entity, group, project, run_id, run_name, url = (text("As it was given.") for _ in range(6))


class MetadataAnswerSchema(AnswerSchema):
    wandb = fields.Nested(WandbAnswerSchema)


def changed(labels: Labels, body: dict[str, Any]) -> Labels:
    run = {name: value for name, value in {**labels.run, **body["metadata"]}.items() if value}
    return Labels(body.get("display_name", labels.display_name), run)


def metadata_view(labels: Labels) -> dict[str, Any]:
    return {"wandb": labels.run} if labels.run else {}
