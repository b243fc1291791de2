"""The base models that live workers serve."""

from typing import Any

from marshmallow import fields

from domain.model import ModelCard
from schemas.base import AnswerSchema


def adapted_modules() -> fields.List:
    """Of a base model, wherever an answer has it."""
    examples = [["mlp.down_proj", "self_attn.q_proj"]]
    return _modules("The modules of a decoder layer that an adapter changes, by their names in it.", examples)


def unadapted_modules() -> fields.List:
    """As `adapted_modules`."""
    return _modules("Those that it leaves as they are: experts, routers, and dense layers beside them.", [[]])


def _modules(description: str, examples: list[list[str]]) -> fields.List:
    return fields.List(fields.String(), metadata={"description": description, "examples": examples})


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
    adapted_modules = adapted_modules()
    unadapted_modules = unadapted_modules()


def model_view(card: ModelCard) -> dict[str, Any]:
    known = {"id": card.name, "vocab_size": card.vocab_size, "context_length": card.context_length}
    return known | adaptation_view(card)


def adaptation_view(card: ModelCard) -> dict[str, Any]:
    """Empty where it is not known."""
    return {"adapted_modules": card.adapted, "unadapted_modules": card.left_out} if card.adapted else {}
