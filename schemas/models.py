"""The base models that live workers serve."""

from typing import Any

from marshmallow import fields

from contract.model import ModelCard
from schemas.base import AnswerSchema


class ModelSchema(AnswerSchema):
    id = fields.String(
        required=True,
        metadata={
            "description": "What base_model takes.",
            "examples": ["HuggingFaceTB/SmolLM2-135M-Instruct"],
        },
    )
    vocab_size = fields.Integer(required=True, metadata={"description": "Token ids are below it.", "examples": [49152]})
    context_length = fields.Integer(
        required=True, metadata={"description": "Most tokens of prompt and completion.", "examples": [8192]}
    )


def model_view(card: ModelCard) -> dict[str, Any]:
    return {"id": card.name, "vocab_size": card.vocab_size, "context_length": card.context_length}
