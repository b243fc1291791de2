"""What a model reads: tokens in one or more chunks, which are concatenated."""

from itertools import chain
from typing import Any

import msgspec
import numpy as np
from marshmallow import ValidationError, fields, post_load

from domain.limits import MOST_ENTRIES
from domain.model import ModelCard
from schemas.arrays import TOO_MANY, IntegerArray, narrowed
from schemas.base import RequestSchema
from schemas.bounds import INT64_MAX, Bounds
from schemas.fields import BoundedList

MOST_CHUNKS = 4096
TOKEN_IDS = Bounds(0, INT64_MAX)


class ModelInput(msgspec.Struct, frozen=True):
    """The tokens of all chunks, as int32 where they fit and else as int64, and how many each chunk has."""

    tokens_T: np.ndarray
    lengths: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.tokens_T)

    def place_of(self, index: int) -> str:
        """The path, inside this input, of the token that is number `index` over all chunks."""
        for number, length in enumerate(self.lengths):
            if index < length:
                return f"chunks[{number}].encoded_text.tokens[{index}]"
            index -= length
        raise IndexError(index)


class EncodedTextSchema(RequestSchema):
    tokens = IntegerArray(
        TOKEN_IDS, required=True, description="Token ids of the base model's vocabulary.", examples=[[504, 2365, 28]]
    )


class InputChunkSchema(RequestSchema):
    encoded_text = fields.Nested(EncodedTextSchema, required=True)


class Chunks(BoundedList):
    """A ModelInput, of one token or more."""

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        model_input = self._from_text(value) or self._from_lists(super()._deserialize(value, *args, **kwargs))
        if not 1 <= len(model_input) <= MOST_ENTRIES:
            raise ValidationError(TOO_MANY if len(model_input) else "needs at least one token")
        return model_input

    def _from_text(self, value: Any) -> ModelInput | None:
        """Of a large body, in a few steps for all chunks; None where one of them is not as it should be."""
        if (
            not isinstance(value, list)
            or len(value) > self.most
            or not isinstance(next(iter(value), None), msgspec.Struct)
        ):
            return None
        texts = [bytes(chunk.encoded_text.tokens) for chunk in value]
        if sum(text.count(b",") for text in texts) >= MOST_ENTRIES:
            raise ValidationError(TOO_MANY)
        try:
            chunks = [IntegerArray.decoder.decode(text) for text in texts]
            tokens_T = np.fromiter(chain.from_iterable(chunks), np.int64)
        except (msgspec.DecodeError, OverflowError):
            return None
        return None if (tokens_T < 0).any() else ModelInput(narrowed(tokens_T), tuple(map(len, chunks)))

    def _from_lists(self, chunks: list[dict[str, Any]]) -> ModelInput:
        arrays = [chunk["encoded_text"]["tokens"] for chunk in chunks] or [np.zeros(0, np.int64)]
        return ModelInput(narrowed(np.concatenate(arrays)), tuple(map(len, arrays)))


class ModelInputSchema(RequestSchema):
    chunks = Chunks(
        fields.Nested(InputChunkSchema),
        most=MOST_CHUNKS,
        required=True,
        description="Concatenated in order; at least one token in all.",
        metadata={"minItems": 1},
    )

    @post_load
    def make(self, data: dict[str, Any], **_: Any) -> ModelInput:
        return data["chunks"]


def outside_vocabulary(tokens_T: np.ndarray, card: ModelCard) -> int | None:
    """The index of the first token id that the model does not have."""
    outside = tokens_T >= card.vocab_size
    return int(outside.argmax()) if outside.any() else None


def vocabulary_sentence(card: ModelCard) -> str:
    return f"is not below {card.vocab_size}, the size of the model's vocabulary"


def over_context(length: int, card: ModelCard) -> str:
    return f"has {length} tokens, over the model's context of {card.context_length}"
