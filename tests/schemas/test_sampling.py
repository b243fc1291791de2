"""The sample body against the model and the limits, and the request it becomes."""

from typing import Any

import pytest

from domain.limits import Limits
from domain.model import NO_TOKENIZER, ModelCard
from domain.sample import SampleRequest, SamplingParams
from schemas.sampling import SampleBodySchema, sample_request
from tests.schemas.bodies import model_input, sample_body
from tests.schemas.refusals import fields_of, problems_of

CARD = ModelCard(name="tiny", vocab_size=64, context_length=32)


def request_of(body: dict[str, Any], card: ModelCard = CARD) -> SampleRequest:
    return sample_request(SampleBodySchema().load(body), card, Limits())


def test_the_defaults_are_as_documented() -> None:
    card = ModelCard(name="long", vocab_size=64, context_length=101)
    request = request_of({"prompt": model_input([1])}, card)
    assert request.params == SamplingParams(max_tokens=100, temperature=1.0, top_p=1.0, top_k=-1, stop=())
    assert request.num_samples == 1
    assert 0 <= request.seed < 2**63


def test_chunks_are_concatenated() -> None:
    request = request_of({"prompt": model_input([1, 2], [], ["3"]), "sampling_params": {"max_tokens": 1}})
    (prompt,) = request.prompts
    assert prompt.tolist() == [1, 2, 3]
    assert prompt.dtype.name == "int32"


def test_unseeded_requests_draw_different_seeds_and_seed_0_is_kept() -> None:
    seeds = {request_of(sample_body([1], max_tokens=1)).seed for _ in range(3)}
    assert len(seeds) == 3
    assert request_of(sample_body([1], max_tokens=1, seed=0)).seed == 0
    assert request_of(sample_body([1], max_tokens=1, seed=-5)).seed == -5


@pytest.mark.parametrize(("top_k", "effective"), [(-1, -1), (0, 0), (1, 1), (63, 63), (64, -1), (65, -1)])
def test_top_k_of_the_vocabulary_or_more_is_off(top_k: int, effective: int) -> None:
    assert request_of(sample_body([1], max_tokens=1, top_k=top_k)).params.top_k == effective


def test_prompt_and_completion_may_fill_the_context_exactly() -> None:
    assert request_of(sample_body([1] * 30, max_tokens=2)).params.max_tokens == 2
    (problem,) = problems_of(lambda: request_of(sample_body([1] * 30, max_tokens=3)))
    assert problem.field == "sampling_params.max_tokens"
    assert all(number in problem.message for number in ("3", "30", "32"))


def test_without_max_tokens_a_completion_may_fill_what_the_prompt_leaves_of_the_context() -> None:
    for length, room in ((1, 31), (30, 2), (32, 0)):
        request = request_of({"prompt": model_input([1] * length)})
        assert request.room(request.prompts[0]) == room
    roomy = request_of(sample_body([1]), ModelCard(name="roomy", vocab_size=64, context_length=500))
    assert roomy.room(roomy.prompts[0]) == 100


def test_a_prompt_longer_than_the_context_is_refused_with_both_lengths() -> None:
    expected = [("prompt.chunks", "has 33 tokens, over the model's context of 32")]
    assert problems_of(lambda: request_of(sample_body([1] * 33))) == expected
    assert problems_of(lambda: request_of(sample_body([1] * 33, max_tokens=0))) == expected


@pytest.mark.parametrize(
    ("asked", "scores"),
    [
        ({"sampling_params": {"max_tokens": 0}}, True),
        ({"sampling_params": {"max_tokens": 0}, "prompt_logprobs": False}, False),
        ({"sampling_params": {"max_tokens": 1}, "prompt_logprobs": True}, True),
        ({"prompt_logprobs": True}, True),
        ({}, False),
    ],
)
def test_a_prompt_that_fills_the_context_can_be_scored(asked: dict[str, Any], scores: bool) -> None:
    request = request_of({"prompt": model_input([1] * 32), **asked})
    assert request.prompt_logprobs is scores
    assert request.room(request.prompts[0]) == 0


def test_more_tokens_than_there_is_room_for_are_refused_when_a_prompt_is_scored_too() -> None:
    body = {**sample_body([1] * 31, max_tokens=2), "prompt_logprobs": True}
    assert fields_of(lambda: request_of(body)) == ["sampling_params.max_tokens"]


def test_stop_token_ids_need_no_tokenizer() -> None:
    bare = ModelCard(name="bare", vocab_size=64, context_length=32, tokenizer_fault=NO_TOKENIZER)
    assert request_of(sample_body([1], stop_token_ids=[5, "63"]), bare).params.stop_token_ids == (5, 63)


@pytest.mark.parametrize("token", [64, 2**31, 2**63 - 1, "64"])
def test_a_token_outside_the_vocabulary_is_named_by_chunk_and_index(token: Any) -> None:
    body = {"prompt": model_input([63], [0, token]), "sampling_params": {"max_tokens": 1}}
    assert problems_of(lambda: request_of(body)) == [
        ("prompt.chunks[1].encoded_text.tokens[1]", "is not below 64, the size of the model's vocabulary")
    ]


def test_stop_strings_need_a_tokenizer() -> None:
    bare = ModelCard(name="bare", vocab_size=64, context_length=32, tokenizer_fault=NO_TOKENIZER)
    body = sample_body([1], max_tokens=1, stop=["a"])
    assert request_of(body).params.stop == ("a",)
    assert fields_of(lambda: request_of(body, bare)) == ["sampling_params.stop"]
    assert request_of(sample_body([1], max_tokens=1, stop=[]), bare).params.stop == ()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (sample_body([-1]), "prompt.chunks[0].encoded_text.tokens[0]"),
        (sample_body([]), "prompt.chunks"),
        ({"prompt": model_input()}, "prompt.chunks"),
        ({"prompt": {"chunks": [{}]}}, "prompt.chunks[0].encoded_text"),
        ({"prompt": {"chunks": [None]}}, "prompt.chunks[0]"),
        ({"prompt": [1, 2]}, "prompt"),
        ({}, "prompt"),
        (sample_body([1], num_samples=0), "num_samples"),
        (sample_body([1], num_samples=257, max_tokens=1), "num_samples"),
        (sample_body([1], num_samples=10**6, max_tokens=1), "num_samples"),
        (sample_body([1], max_tokens=-1), "sampling_params.max_tokens"),
        (sample_body([1], max_tokens=1.0), "sampling_params.max_tokens"),
        (sample_body([1], temperature=-1), "sampling_params.temperature"),
        (sample_body([1], temperature="1"), "sampling_params.temperature"),
        (sample_body([1], top_p=0), "sampling_params.top_p"),
        (sample_body([1], top_p=1.01), "sampling_params.top_p"),
        (sample_body([1], top_k=-2), "sampling_params.top_k"),
        (sample_body([1], seed=2**63), "sampling_params.seed"),
        (sample_body([1], seed=1.5), "sampling_params.seed"),
        (sample_body([1], stop=[""]), "sampling_params.stop[0]"),
        (sample_body([1], stop=["a", 13]), "sampling_params.stop[1]"),
        (sample_body([1], stop="END"), "sampling_params.stop"),
        (sample_body([1], stop=["a"] * 65), "sampling_params.stop"),
        (sample_body([1], stop=["a" * 1025]), "sampling_params.stop[0]"),
        (sample_body([1], stop_token_ids=[3, -1]), "sampling_params.stop_token_ids[1]"),
        (sample_body([1], stop_token_ids=[3, 64]), "sampling_params.stop_token_ids[1]"),
        (sample_body([1], stop_token_ids=3), "sampling_params.stop_token_ids"),
        (sample_body([1], stop_token_ids=[1] * 65), "sampling_params.stop_token_ids"),
        ({**sample_body([1]), "prompt_logprobs": 1}, "prompt_logprobs"),
    ],
)
def test_a_wrong_field_is_named(body: dict[str, Any], field: str) -> None:
    assert fields_of(lambda: request_of(body)) == [field]


def test_temperature_0_and_the_largest_num_samples_are_accepted() -> None:
    request = request_of(sample_body([1], num_samples="256", max_tokens="2", temperature=0))
    assert (request.num_samples, request.params.max_tokens, request.params.temperature) == (256, 2, 0.0)
