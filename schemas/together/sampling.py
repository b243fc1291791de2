"""The sample call: many prompts at once, and what the model thinks of the prompts themselves."""

from typing import Any

from marshmallow import fields

from domain.limits import Limits
from domain.model import ModelCard
from domain.sample import SampleRequest, SampleResult, ScoredPrompt, StopReason
from schemas.arrays import AnswerArray
from schemas.base import AnswerSchema, RequestSchema
from schemas.bounds import INT32_MAX, Bounds
from schemas.fields import BoundedList, Choice, Flag, Integer, prefixed
from schemas.model_input import ModelInputSchema
from schemas.problems import refusal
from schemas.sampling import SamplingParamsSchema, prompts_request
from schemas.together.operations import OperationSchema
from schemas.together.payloads import apart_id, payload_id

MOST_PROMPTS = 16_384
MOST_TOP = 20


class SampleBodySchema(RequestSchema):
    model_inputs = BoundedList(
        fields.Nested(ModelInputSchema), most=MOST_PROMPTS, required=True, description="The prompts."
    )
    num_samples = Integer(Bounds(1, INT32_MAX), load_default=1, description="Completions of each prompt.")
    sampling_params = fields.Nested(SamplingParamsSchema, load_default=lambda: SamplingParamsSchema().load({}))
    prompt_logprobs = Flag(load_default=False, description="Return the logprobs of the prompts' tokens.")
    topk_prompt_logprobs = Integer(
        Bounds(0, MOST_TOP), load_default=0, description="Return so many likeliest tokens for each of the prompts'."
    )
    payload_id = payload_id()
    return_routed_experts = Flag(load_default=False, description="Has no effect: the models here have no experts.")


class SequenceSchema(AnswerSchema):
    tokens = AnswerArray("integer", description="Token ids without the prompt.", examples=[[30, 198, 2]])
    logprobs = AnswerArray("number", description="One per token, raw.", examples=[[-0.5, -1.25, -0.03125]])
    stop_reason = Choice(prefixed(StopReason, "STOP_REASON_"), required=True, description="Why it ended.")
    prompt_cache_hit_tokens = fields.Integer(
        required=True, metadata={"description": "Always 0: a prompt is run anew for each request."}
    )


class PolicySegmentSchema(AnswerSchema):
    start_token = fields.Integer(required=True, metadata={"description": "Always 0: all tokens are of one version."})
    version = fields.Integer(required=True, metadata={"description": "The step of the weights that sampled."})


class TopSchema(AnswerSchema):
    token_ids = fields.List(fields.Integer(), required=True, metadata={"description": "The likeliest first."})
    logprobs = fields.List(fields.Float(), required=True, metadata={"description": "Theirs."})


class PromptResultSchema(AnswerSchema):
    policy_segments = fields.List(fields.Nested(PolicySegmentSchema), required=True)
    sequences = fields.List(fields.Nested(SequenceSchema), required=True)
    prompt_logprobs = fields.List(fields.Float(), metadata={"description": "If asked for; the first entry is 0."})
    topk_prompt_logprobs = fields.List(
        fields.Nested(TopSchema), metadata={"description": "If asked for; the first entry is empty."}
    )


class SampleResultSchema(AnswerSchema):
    results = fields.List(
        fields.Nested(PromptResultSchema),
        required=True,
        metadata={"description": "One a prompt; none beside payload_id."},
    )
    payload_id = apart_id()


class SampleOperationSchema(OperationSchema):
    output = fields.Nested(SampleResultSchema, metadata={"description": "The result, once COMPLETED."})


def sample_request(body: dict[str, Any], card: ModelCard, limits: Limits, has_generator: bool) -> SampleRequest:
    """Raises ValidationError for what the session, its model or the server's limits refuse."""
    if not has_generator:
        raise refusal("model_inputs", "this session has no generator: its model resources have 0 replicas of it")
    inputs = body["model_inputs"]
    if not 1 <= len(inputs) <= limits.max_samples_per_call:
        raise refusal("model_inputs", f"must have 1 to {limits.max_samples_per_call} prompts")
    prompts = {f"model_inputs[{index}]": prompt for index, prompt in enumerate(inputs)}
    asked = {name: body[name] for name in ("prompt_logprobs", "topk_prompt_logprobs")}
    return prompts_request(prompts, body, card, limits, **asked)


def result_view(result: SampleResult) -> dict[str, Any]:
    count = len(result.sequences) // result.num_prompts
    rows = [result.sequences[start : start + count] for start in range(0, len(result.sequences), count)]
    scores = result.prompts or (None,) * len(rows)
    segments = [{"start_token": 0, "version": result.step}]
    return {
        "results": [
            {"policy_segments": segments, "sequences": [_sequence(each) for each in row], **_scores(score)}
            for row, score in zip(rows, scores, strict=True)
        ]
    }


def _sequence(sequence: Any) -> dict[str, Any]:
    names = ("tokens", "logprobs", "stop_reason")
    return {"prompt_cache_hit_tokens": 0, **{name: getattr(sequence, name) for name in names}}


def _scores(score: ScoredPrompt | None) -> dict[str, Any]:
    if score is None:
        return {}
    view: dict[str, Any] = {"prompt_logprobs": score.logprobs.tolist()}
    if not score.top:
        return view
    tokens, logprobs = score.top_tokens.reshape(-1, score.top), score.top_logprobs.reshape(-1, score.top)
    pairs = zip(tokens.tolist(), logprobs.tolist(), strict=True)
    top = [{"token_ids": ids, "logprobs": values} for ids, values in pairs]
    return {**view, "topk_prompt_logprobs": [{"token_ids": [], "logprobs": []}, *top]}
