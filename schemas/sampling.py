"""The sample call: its body, the checks that need the model, and the request it becomes."""

import secrets
from typing import Any

import numpy as np
from marshmallow import fields, post_load, pre_dump, validate

from domain.limits import Limits
from domain.model import ModelCard
from domain.sample import SampleRequest, SampleResult, SamplingParams, StopReason
from schemas.arrays import AnswerArray, IntegerArray
from schemas.base import AnswerSchema, RequestSchema
from schemas.bounds import FLOAT32_MAX, FLOAT32_TINY, INT32_MAX, INT64_MAX, Bounds
from schemas.fields import BoundedList, Choice, Flag, Integer, Number
from schemas.model_input import (
    TOKEN_IDS,
    ModelInput,
    ModelInputSchema,
    outside_vocabulary,
    over_context,
    vocabulary_sentence,
)
from schemas.operations import OperationSchema
from schemas.problems import refusal
from schemas.time_limit import timeout_seconds

DEFAULTS = SamplingParams()
MOST_STOPS = 64
MOST_STOP_CHARACTERS = 1024


class SamplingParamsSchema(RequestSchema):
    max_tokens = Integer(
        Bounds(0, INT32_MAX),
        description="Most tokens of one completion. When absent, 100 or as many as the model's context has room for.",
        metadata={"default": DEFAULTS.max_tokens},
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
        most=MOST_STOPS,
        load_default=list,
        description="A completion ends with the token that completes one of these.",
        metadata={"default": [], "maxItems": MOST_STOPS, "examples": [["\n\n", "END"]]},
    )
    stop_token_ids = IntegerArray(
        TOKEN_IDS,
        load_default=lambda: np.zeros(0, np.int64),
        description=f"A completion ends with these too, as with the model's own end tokens. At most {MOST_STOPS}.",
        examples=[[2]],
    )
    seed = Integer(description="Makes the completions reproducible; drawn at random when absent.")

    @post_load
    def freeze(self, params: dict[str, Any], **_: Any) -> dict[str, Any]:
        if len(params["stop_token_ids"]) > MOST_STOPS:
            raise refusal("stop_token_ids", f"must have at most {MOST_STOPS} items")
        return {**params, "stop": tuple(params["stop"])}


class SampleBodySchema(RequestSchema):
    prompt = fields.Nested(ModelInputSchema, required=True)
    num_samples = Integer(Bounds(1, INT32_MAX), load_default=1, description="Completions of the prompt.")
    sampling_params = fields.Nested(SamplingParamsSchema, load_default=lambda: SamplingParamsSchema().load({}))
    prompt_logprobs = Flag(
        description="Return the logprobs of the prompt's own tokens. True when absent where max_tokens is 0, so that "
        "a prompt may be scored which fills the context."
    )
    timeout_seconds = timeout_seconds()


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
        description="stop after an end token or a stop string, length at max_tokens or the context's end.",
    )


class SampleResultSchema(AnswerSchema):
    sequences = fields.List(
        fields.Nested(SequenceSchema), required=True, metadata={"description": "num_samples of them, in order."}
    )
    prompt_logprobs = fields.List(
        fields.Float(),
        metadata={
            "description": "If asked for: one per token of the prompt, raw; the first, which nothing predicts, is 0.",
            "examples": [[0.0, -1.5, -0.25]],
        },
    )

    @pre_dump
    def view(self, result: SampleResult, **_: Any) -> dict[str, Any]:
        scores = [prompt.logprobs.tolist() for prompt in result.prompts]
        return {"sequences": result.sequences, **({"prompt_logprobs": scores[0]} if scores else {})}


class SampleOperationSchema(OperationSchema):
    data = fields.Nested(SampleResultSchema, metadata={"description": "The result, once COMPLETED."})


def sample_request(body: dict[str, Any], card: ModelCard, limits: Limits) -> SampleRequest:
    """The request. Raises ValidationError for what the session's model or the server's limits refuse."""
    scores = body.get("prompt_logprobs", body["sampling_params"].get("max_tokens") == 0)
    return prompts_request({"prompt": body["prompt"]}, body, card, limits, prompt_logprobs=scores)


def prompts_request(
    prompts: dict[str, ModelInput], body: dict[str, Any], card: ModelCard, limits: Limits, **asked: Any
) -> SampleRequest:
    """The request for many prompts, each under its path in the body; `asked` is what else a SampleRequest may ask."""
    params, num_samples = dict(body["sampling_params"]), body["num_samples"]
    seed = params.pop("seed", None)
    if num_samples > limits.max_num_samples:
        raise refusal("num_samples", f"must be at most {limits.max_num_samples}")
    for path, prompt in prompts.items():
        _check_prompt(prompt, path, card)
        _check_room(prompt, params.get("max_tokens", 0), card, scores=any(asked.values()))
    if params["stop"] and card.tokenizer_fault:
        raise refusal("sampling_params.stop", f"needs a tokenizer, and {card.tokenizer_fault}")
    if params["top_k"] >= card.vocab_size:
        params["top_k"] = DEFAULTS.top_k
    params["stop_token_ids"] = _stop_token_ids(params["stop_token_ids"], card)
    return SampleRequest(
        prompts=tuple(prompt.tokens_T.astype(np.int32) for prompt in prompts.values()),
        num_samples=num_samples,
        params=SamplingParams(**params),
        seed=secrets.randbits(63) if seed is None else seed,
        max_length=card.context_length,
        **asked,
    )


def _check_prompt(prompt: ModelInput, path: str, card: ModelCard) -> None:
    if len(prompt) > card.context_length:
        raise refusal(f"{path}.chunks", over_context(len(prompt), card))
    offender = outside_vocabulary(prompt.tokens_T, card)
    if offender is not None:
        raise refusal(f"{path}.{prompt.place_of(offender)}", vocabulary_sentence(card))


def _check_room(prompt: ModelInput, max_tokens: int, card: ModelCard, *, scores: bool) -> None:
    """The official SDK asks for one token where it wants a prompt's scores alone; that one may have no room."""
    if len(prompt) + max_tokens > card.context_length and not (scores and max_tokens == 1):
        sentence = (
            f"asks for {max_tokens} tokens after a prompt of {len(prompt)}, over the model's context of "
            f"{card.context_length}"
        )
        raise refusal("sampling_params.max_tokens", sentence)


def _stop_token_ids(tokens: np.ndarray, card: ModelCard) -> tuple[int, ...]:
    offender = outside_vocabulary(tokens, card)
    if offender is not None:
        raise refusal(f"sampling_params.stop_token_ids[{offender}]", vocabulary_sentence(card))
    return tuple(tokens.tolist())
