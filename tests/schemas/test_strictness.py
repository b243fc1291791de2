"""Unknown fields, null, and what an error may say."""

from typing import Any

import pytest

from schemas.errors import invalid_body
from schemas.optim_step import OptimStepBodySchema, optim_step_request
from schemas.problems import first_problems, shorten
from schemas.sampling import SampleBodySchema
from schemas.sessions import CreateSessionSchema
from tests.schemas.bodies import sample_body
from tests.schemas.refusals import fields_of, problems_of


def test_a_misspelt_field_is_named_with_the_one_that_was_meant() -> None:
    body = {"adamw_params": {"weight_decy": 0}}
    assert problems_of(lambda: OptimStepBodySchema().load(body)) == [
        ("adamw_params.weight_decy", "unknown field; did you mean weight_decay?")
    ]


def test_a_field_with_a_type_beside_it_is_refused_too() -> None:
    body = {"prompt": {"chunks": [{"encoded_text": {"tokens": [1]}, "type": "encoded_text"}]}}
    assert fields_of(lambda: SampleBodySchema().load(body)) == ["prompt.chunks[0].type"]


def test_null_for_an_optional_field_is_its_absence() -> None:
    schema = SampleBodySchema()
    nothing = {"prompt": sample_body([1])["prompt"]}
    assert schema.load({**nothing, "sampling_params": None, "num_samples": None})["num_samples"] == 1
    params = schema.load({**nothing, "sampling_params": {"stop": None, "temperature": None}})["sampling_params"]
    assert (params["stop"], params["temperature"], "seed" in params) == ((), 1.0, False)
    assert CreateSessionSchema().load({"base_model": "m", "lora_config": None, "checkpoint_id": None}) == {
        "base_model": "m",
        "lora_config": {},
    }


def test_null_for_a_required_or_unknown_field_is_refused() -> None:
    assert problems_of(lambda: CreateSessionSchema().load({"base_model": None})) == [("base_model", "must not be null")]
    assert fields_of(lambda: CreateSessionSchema().load({"base_model": "m", "seed": None})) == ["seed"]


def test_zero_is_zero() -> None:
    zeros = {"learning_rate": 0, "adamw_params": {"beta1": 0, "beta2": 0.0, "weight_decay": 0}}
    request = optim_step_request(OptimStepBodySchema().load(zeros))
    assert (request.learning_rate, request.beta1, request.beta2, request.weight_decay) == (0, 0, 0, 0)
    assert request.eps == 1e-8


@pytest.mark.parametrize("body", [None, [], "x", 3, True, [{}]])
def test_a_body_that_is_not_an_object_is_refused_as_a_whole(body: Any) -> None:
    assert problems_of(lambda: OptimStepBodySchema().load(body)) == [("", "must be a JSON object")]


def test_ten_problems_are_told_and_the_rest_counted() -> None:
    body = invalid_body({f"field{i}": ["unknown field"] for i in range(1000)}, "id")
    assert len(body["errors"]) == 10
    assert body["message"].endswith("(and 999 more)")


def test_long_names_and_unprintable_ones_are_cut() -> None:
    body = {"x" * 100_000: 1, "\x00\n" * 1000: 1}
    problems = problems_of(lambda: OptimStepBodySchema().load(body))
    assert max(len(problem.field) for problem in problems) == 64
    assert all(problem.field.isprintable() for problem in problems)


def test_names_at_the_limit_are_kept_whole() -> None:
    assert shorten("a" * 64) == "a" * 64
    assert shorten("a" * 65) == "a" * 63 + "…"


def test_paths_read_like_the_body() -> None:
    messages = {"samples": {0: {"loss_inputs": {"advantages": {"data": {3: ["bad"]}}}}, 2: {"_schema": ["worse"]}}}
    assert first_problems(messages) == (
        [("samples[0].loss_inputs.advantages.data[3]", "bad"), ("samples[2]", "worse")],
        0,
    )
