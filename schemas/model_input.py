"""What a model reads: tokens in one or more chunks, which are concatenated."""

from typing import Any

import msgspec
import numpy as np
from marshmallow import fields, post_load

from contract.model import ModelCard
from schemas.arrays import IntegerArray
from schemas.base import RequestSchema
from schemas.bounds import INT64_MAX, Bounds
from schemas.fields import BoundedList
from schemas.problems import refusal

MOST_CHUNKS = 4096
TOKEN_IDS = Bounds(0, INT64_MAX)


class ModelInput(msgspec.Struct, frozen=True):
    """The chunks as they came, each an int64 array."""

    chunks: tuple[np.ndarray, ...]

    def __len__(self) -> int:
        return sum(len(chunk) for chunk in self.chunks)

    @property
    def tokens_T(self) -> np.ndarray:
        return self.chunks[0] if len(self.chunks) == 1 else np.concatenate(self.chunks)

    def place_of(self, index: int) -> str:
        """The path, inside this input, of the token that is number `index` over all chunks."""
        for number, chunk in enumerate(self.chunks):
            if index < len(chunk):
                return f"chunks[{number}].encoded_text.tokens[{index}]"
            index -= len(chunk)
        raise IndexError(index)


class EncodedTextSchema(RequestSchema):
    tokens = IntegerArray(
        TOKEN_IDS, required=True, description="Token ids of the base model's vocabulary.", examples=[[504, 2365, 28]]
    )


class InputChunkSchema(RequestSchema):
    encoded_text = fields.Nested(EncodedTextSchema, required=True)


class ModelInputSchema(RequestSchema):
    chunks = BoundedList(
        fields.Nested(InputChunkSchema),
        most=MOST_CHUNKS,
        required=True,
        description="Concatenated in order; at least one token in all.",
        metadata={"minItems": 1},
    )

    @post_load
    def make(self, data: dict[str, Any], **_: Any) -> ModelInput:
        model_input = ModelInput(tuple(chunk["encoded_text"]["tokens"] for chunk in data["chunks"]))
        if len(model_input) == 0:
            raise refusal("chunks", "needs at least one token")
        return model_input


def outside_vocabulary(tokens_T: np.ndarray, card: ModelCard) -> int | None:
    """The index of the first token id that the model does not have."""
    outside = tokens_T >= card.vocab_size
    return int(outside.argmax()) if outside.any() else None


def vocabulary_sentence(card: ModelCard) -> str:
    return f"is not below {card.vocab_size}, the size of the model's vocabulary"


def over_context(length: int, card: ModelCard) -> str:
    return f"has {length} tokens, over the model's context of {card.context_length}"
