"""Whatever JSON comes, a schema accepts it or says what is wrong, and says it briefly."""

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from marshmallow import Schema, ValidationError

from domain.limits import Limits
from domain.model import ModelCard
from schemas import examples
from schemas.errors import invalid_body
from schemas.forward_backward import ForwardBackwardBodySchema, forward_backward_request
from schemas.optim_step import OptimStepBodySchema, optim_step_request
from schemas.sampling import SampleBodySchema, sample_request
from schemas.sessions import CreateSessionSchema, session_spec

CARD = ModelCard(name="m", vocab_size=49152, context_length=8192)
CALLS: list[tuple[Schema, dict[str, Any], Any]] = [
    (SampleBodySchema(), examples.SAMPLE, lambda body: sample_request(body, CARD, Limits())),
    (
        ForwardBackwardBodySchema(),
        examples.FORWARD_BACKWARD,
        lambda body: forward_backward_request(body, CARD, Limits(), horizon=1024),
    ),
    (OptimStepBodySchema(), examples.OPTIM_STEP, optim_step_request),
    (CreateSessionSchema(), {"base_model": "m"}, lambda body: session_spec(body, CARD, Limits(), "an owner")),
]

scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=8)
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
)


def judge(schema: Schema, translate: Any, body: Any) -> None:
    try:
        translate(schema.load(body))
    except ValidationError as error:
        said = orjson.dumps(invalid_body(error.messages, "id"))
        assert len(said) < 10_000


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) below `value`."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    return [(value, key) for key in keys] + [place for key in keys for place in places(value[key])]


@pytest.mark.parametrize("call", range(len(CALLS)))
@settings(max_examples=60, deadline=None)
@given(body=anything)
def test_any_body_is_judged(call: int, body: Any) -> None:
    schema, _, translate = CALLS[call]
    judge(schema, translate, body)


@pytest.mark.parametrize("call", range(len(CALLS)))
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_good_body_with_one_place_replaced_is_judged(call: int, data: st.DataObject) -> None:
    schema, good, translate = CALLS[call]
    body = orjson.loads(orjson.dumps(good))
    container, key = data.draw(st.sampled_from(places(body)))
    container[key] = data.draw(anything)
    judge(schema, translate, body)


@pytest.mark.parametrize(("schema", "good", "translate"), CALLS)
def test_the_documented_examples_are_accepted(schema: Schema, good: dict[str, Any], translate: Any) -> None:
    translate(schema.load(good))
