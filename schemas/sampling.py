"""The sample call: its body, the checks that need the model, and the request it becomes."""

import secrets
from typing import Any

import numpy as np
from marshmallow import fields, post_load, validate

from contract.limits import Limits
from contract.model import ModelCard
from contract.sample import SampleRequest, SamplingParams, StopReason
from schemas.arrays import AnswerArray
from schemas.base import AnswerSchema, RequestSchema
from schemas.bounds import FLOAT32_MAX, FLOAT32_TINY, INT32_MAX, INT64_MAX, Bounds
from schemas.fields import BoundedList, Choice, Integer, Number
from schemas.model_input import ModelInput, ModelInputSchema, outside_vocabulary, vocabulary_sentence
from schemas.operations import OperationSchema
from schemas.problems import refusal

DEFAULTS = SamplingParams()
MOST_STOP_STRINGS = 64
MOST_STOP_CHARACTERS = 1024


class SamplingParamsSchema(RequestSchema):
    max_tokens = Integer(
        Bounds(1, INT32_MAX), load_default=DEFAULTS.max_tokens, description="Most tokens of one completion."
    )
    temperature = Number(
        Bounds(0.0, FLOAT32_MAX), load_default=DEFAULTS.temperature, description="0 always takes the likeliest token."
    )
    top_p = Number(
        Bounds(FLOAT32_TINY, 1.0),
        load_default=DEFAULTS.top_p,
        description="Draws from the smallest set of tokens whose mass reaches top_p; 1 is off.",
    )
    top_k = Integer(
        Bounds(-1, INT64_MAX),
        load_default=DEFAULTS.top_k,
        description="Draws from the top_k likeliest tokens; -1, 0 and the vocabulary's size are off.",
    )
    stop = BoundedList(
        fields.String(
            validate=validate.Length(1, MOST_STOP_CHARACTERS, error="must have {min} to {max} characters"),
            error_messages={"invalid": "must be a string"},
        ),
        most=MOST_STOP_STRINGS,
        load_default=list,
        description="A completion ends with the token that completes one of these.",
        metadata={"default": [], "maxItems": MOST_STOP_STRINGS, "examples": [["\n\n", "END"]]},
    )
    seed = Integer(description="Makes the completions reproducible; drawn at random when absent.")

    @post_load
    def freeze(self, params: dict[str, Any], **_: Any) -> dict[str, Any]:
        return {**params, "stop": tuple(params["stop"])}


class SampleBodySchema(RequestSchema):
    prompt = fields.Nested(ModelInputSchema, required=True)
    num_samples = Integer(Bounds(1, INT32_MAX), load_default=1, description="Completions of the prompt.")
    sampling_params = fields.Nested(SamplingParamsSchema, load_default=lambda: SamplingParamsSchema().load({}))


class SequenceSchema(AnswerSchema):
    tokens = AnswerArray("integer", description="Token ids without the prompt.", examples=[[30, 198, 2]])
    logprobs = AnswerArray(
        "number",
        description="One per token: log-softmax of the raw logits, before temperature, top_k and top_p.",
        examples=[[-0.5, -1.25, -0.03125]],
    )
    stop_reason = Choice(
        {reason.value: reason for reason in StopReason},
        required=True,
        description="stop after an end token or a stop string, length at max_tokens.",
    )


class SampleResultSchema(AnswerSchema):
    sequences = fields.List(
        fields.Nested(SequenceSchema), required=True, metadata={"description": "num_samples of them, in order."}
    )


class SampleOperationSchema(OperationSchema):
    data = fields.Nested(SampleResultSchema, metadata={"description": "The result, once COMPLETED."})


def sample_request(body: dict[str, Any], card: ModelCard, limits: Limits) -> SampleRequest:
    """The request. Raises ValidationError for what the session's model or the server's limits refuse."""
    return prompts_request({"prompt": body["prompt"]}, body, card, limits)


def prompts_request(
    prompts: dict[str, ModelInput], body: dict[str, Any], card: ModelCard, limits: Limits, **asked: Any
) -> SampleRequest:
    """The request for many prompts, each under its path in the body; `asked` is what else a SampleRequest may ask."""
    params, num_samples = dict(body["sampling_params"]), body["num_samples"]
    seed = params.pop("seed", None)
    if num_samples > limits.max_num_samples:
        raise refusal("num_samples", f"must be at most {limits.max_num_samples}")
    for path, prompt in prompts.items():
        _check_prompt(prompt, path, params["max_tokens"], card)
    if params["stop"] and not card.has_tokenizer:
        raise refusal("sampling_params.stop", "needs a tokenizer, which this model does not have")
    if params["top_k"] >= card.vocab_size:
        params["top_k"] = DEFAULTS.top_k
    return SampleRequest(
        prompts=tuple(prompt.tokens_T.astype(np.int32) for prompt in prompts.values()),
        num_samples=num_samples,
        params=SamplingParams(**params),
        seed=secrets.randbits(63) if seed is None else seed,
        **asked,
    )


def _check_prompt(prompt: ModelInput, path: str, max_tokens: int, card: ModelCard) -> None:
    if len(prompt) + max_tokens > card.context_length:
        sentence = (
            f"asks for {max_tokens} tokens after a prompt of {len(prompt)}, over the model's context of "
            f"{card.context_length}"
        )
        raise refusal("sampling_params.max_tokens", sentence)
    offender = outside_vocabulary(prompt.tokens_T, card)
    if offender is not None:
        raise refusal(f"{path}.{prompt.place_of(offender)}", vocabulary_sentence(card))
