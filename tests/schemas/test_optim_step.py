"""AdamW's parameters: bounds and defaults."""

from typing import Any

import pytest

from domain.optim_step import OptimStepRequest
from schemas.optim_step import OptimStepBodySchema, optim_step_request
from tests.schemas.refusals import fields_of


def test_an_empty_body_takes_every_default() -> None:
    assert optim_step_request(OptimStepBodySchema().load({})) == OptimStepRequest(
        learning_rate=1e-4, beta1=0.9, beta2=0.95, eps=1e-8, weight_decay=0.1
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("beta1", 1.0),
        ("beta1", -0.1),
        ("beta2", 1),
        ("eps", 0),
        ("eps", 1e-50),
        ("eps", 1e-30),
        ("eps", 9e-19),
        ("eps", -1),
        ("weight_decay", -1),
    ],
)
def test_adamw_params_are_bounded(name: str, value: Any) -> None:
    assert fields_of(lambda: OptimStepBodySchema().load({"adamw_params": {name: value}})) == [f"adamw_params.{name}"]


@pytest.mark.parametrize("value", [-1, "0.1", True, 1e39, float("nan")])
def test_the_learning_rate_is_a_number_from_0(value: Any) -> None:
    assert fields_of(lambda: OptimStepBodySchema().load({"learning_rate": value})) == ["learning_rate"]
