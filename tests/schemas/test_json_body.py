"""A large body means what a small one does, and is refused before much is made of it."""

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from marshmallow import Schema, ValidationError

from domain.limits import MOST_ENTRIES
from schemas import examples, json_body
from schemas.forward_backward import ForwardBackwardBodySchema
from schemas.json_body import LARGE, read_json
from schemas.model_input import MOST_CHUNKS
from schemas.optim_step import OptimStepBodySchema
from schemas.sampling import SampleBodySchema
from schemas.sessions import CreateSessionSchema
from schemas.together import forward_backward as together
from schemas.together.sampling import SampleBodySchema as TogetherSampleBodySchema
from tests.schemas.bodies import cross_entropy, grpo, model_input, sample
from tests.schemas.refusals import problems_of
from tests.schemas.test_any_json import anything, places

ROOT = Path(__file__).parents[2]
TENSOR = {"data": [1, 2], "dtype": "int64", "shape": [2]}
TOGETHER_SAMPLE = {
    "model_input": model_input([1], ["2"]),
    "loss_fn_inputs": {"target_tokens": TENSOR, "weights": {"data": [0, 0.5], "dtype": "float32"}},
}
GOOD: list[tuple[Schema, dict[str, Any]]] = [
    (SampleBodySchema(), examples.SAMPLE),
    (SampleBodySchema(), {"prompt": model_input([1, 2], ["3"]), "sampling_params": {"stop": ["a"], "seed": None}}),
    (ForwardBackwardBodySchema(), examples.FORWARD_BACKWARD),
    (ForwardBackwardBodySchema(), cross_entropy(sample([1, 2], mask=[0, 1]), sample([2**40], targets=[2**50]))),
    (OptimStepBodySchema(), examples.OPTIM_STEP),
    (CreateSessionSchema(), {"base_model": "m", "lora_config": None}),
    (
        together.ForwardBackwardBodySchema(),
        {"loss": {"type": "LOSS_TYPE_CROSS_ENTROPY"}, "samples": [TOGETHER_SAMPLE], "payload_id": "x"},
    ),
    (
        together.CustomForwardBackwardBodySchema(),
        {"samples": [TOGETHER_SAMPLE], "gradients": [{"data": [0.25, -1], "dtype": "D_TYPE_BFLOAT16"}]},
    ),
    (TogetherSampleBodySchema(), {"model_inputs": [model_input([1], [2, 3])] * 2}),
]
MOST = 1000


def large(body: Any) -> bytes:
    return orjson.dumps(body) + b" " * LARGE


def judged(schema: Schema, text: bytes) -> Any:
    """What is made of it, comparable, or None for a refusal."""
    try:
        return orjson.dumps(schema.load(read_json(text, schema, MOST)), default=_plain, option=orjson.OPT_NON_STR_KEYS)
    except ValidationError:
        return None


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return [value.dtype.name, value.tolist()]
    return {name: getattr(value, name) for name in value.__struct_fields__}


@pytest.mark.parametrize(("schema", "body"), GOOD)
def test_a_good_body_means_the_same_however_large_it_is(schema: Schema, body: Any) -> None:
    small = judged(schema, orjson.dumps(body))
    assert small is not None
    assert judged(schema, large(body)) == small


@pytest.mark.parametrize("case", range(len(GOOD)))
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_a_body_with_one_place_replaced_is_judged_the_same_however_large_it_is(case: int, data: st.DataObject) -> None:
    schema, good = GOOD[case]
    body = orjson.loads(orjson.dumps(good))
    container, key = data.draw(st.sampled_from(places(body)))
    container[key] = data.draw(anything)
    assert judged(schema, large(body)) == judged(schema, orjson.dumps(body))


def wrong(**changes: Any) -> dict[str, Any]:
    return cross_entropy(sample([1]), {**sample([1]), **changes})


@pytest.mark.parametrize(
    ("body", "field", "message"),
    [
        ({"samples": [{"a": [1]}] * 2}, "samples[0].a", "unknown field"),
        (wrong(loss_input={}), "samples[1].loss_input", "unknown field; did you mean loss_inputs?"),
        ({"samples": [{"model_input": model_input([1])}]}, "samples[0].loss_inputs", "is required"),
        (wrong(loss_inputs=3), "samples[1].loss_inputs", "must be a JSON object"),
        (wrong(loss_inputs=None), "samples[1].loss_inputs", "must not be null"),
        ({"samples": {}}, "samples", "must be a list"),
        ({"samples": None}, "samples", "must not be null"),
        ({"samples": [None]}, "samples[0]", "must not be null"),
        ([], "", "must be a JSON object"),
        ({"samples": "x", "loss": {}}, "samples", "must be a list"),
        (grpo(sample([1]), clip_low=[]), "loss.grpo_params.clip_low", "must be a number"),
        (
            cross_entropy(sample([1, -1])),
            "samples[0].model_input.chunks[0].encoded_text.tokens[1]",
            "must be at least 0",
        ),
        (cross_entropy(sample([1], mask=[2])), "samples[0].loss_inputs.loss_mask.data[0]", "must be at most 1"),
        (cross_entropy(sample([1], mask=[[]])), "samples[0].loss_inputs.loss_mask.data[0]", "must be an integer"),
        (cross_entropy(sample([])), "samples[0].model_input.chunks", "needs at least one token"),
        (cross_entropy(*[sample([1])] * (MOST + 1)), "samples", f"has {MOST + 1} samples, over the limit of {MOST}"),
        (
            cross_entropy({**sample([1]), "model_input": model_input(*[[1]] * (MOST_CHUNKS + 1))}),
            "samples[0].model_input.chunks",
            f"must have at most {MOST_CHUNKS} items",
        ),
        (
            cross_entropy(sample([1] * (MOST_ENTRIES + 1))),
            "samples[0].model_input.chunks",
            f"must have at most {MOST_ENTRIES} entries",
        ),
        (
            cross_entropy(sample([1], mask=[1] * (MOST_ENTRIES + 1))),
            "samples[0].loss_inputs.loss_mask.data",
            f"must have at most {MOST_ENTRIES} entries",
        ),
        (
            {"samples": [], "timeout_seconds": "x" * 2**21},
            "timeout_seconds",
            f"has {2**21 + 2} bytes, over the limit of {2**20}",
        ),
        ({"samples": [{}] * (json_body.MOST_OBJECTS)}, "", "has 262145 JSON objects, over the limit of 262144"),
    ],
)
def test_the_first_thing_that_has_no_place_in_it_is_named(body: Any, field: str, message: str) -> None:
    schema = ForwardBackwardBodySchema()
    problems = problems_of(lambda: schema.load(read_json(large(body), schema, MOST)))
    assert (field, message) in [tuple(problem) for problem in problems]


@pytest.mark.parametrize(
    "text",
    [
        b"[" * (LARGE + 1),
        b'{"a":' * LARGE,
        b'{"samples":' + b"[" * (LARGE + 1),
        b'{"timeout_seconds":' + b"[" * LARGE + b"]" * LARGE + b"}",
        b'{"timeout_seconds": NaN, "samples": []' + b" " * LARGE + b"}",
        b'{"timeout_seconds": 1e999' + b" " * LARGE + b"}",
        b'{"timeout_seconds": "\xff"' + b" " * LARGE + b"}",
        b'{"timeout_seconds": "\\ud800"' + b" " * LARGE + b"}",
        b'{"\xff": 1' + b" " * LARGE + b"}",
        b'{"samples": []}' + b" " * LARGE + b"{}",
        b'{"samples": [' + b" " * LARGE,
        b'{"timeout_seconds": ' + b"9" * LARGE + b"}",
        b'{"samples": [{"model_input": {"chunks": [{"encoded_text": {"tokens": [' + b"9" * LARGE + b"]}}]}}]}",
    ],
)
def test_what_is_not_json_is_refused_however_large_it_is(text: bytes) -> None:
    assert len(text) > LARGE
    assert judged(ForwardBackwardBodySchema(), text) is None


MEASURED = """
    import resource, sys
    from domain.limits import Limits
    from domain.model import ModelCard
    from marshmallow import ValidationError
    from schemas.forward_backward import ForwardBackwardBodySchema, forward_backward_request
    from schemas.json_body import read_json

    unit, megabytes = sys.stdin.buffer.read(), int(sys.argv[1])
    card, schema = ModelCard(name="m", vocab_size=49152, context_length=2**20), ForwardBackwardBodySchema()

    def run(size):
        text = unit + (b"," + unit) * (size // len(unit))
        text = b'{"loss":{"type":"LOSS_TYPE_CROSS_ENTROPY"},"samples":[' + text + b"]}"
        try:
            return forward_backward_request(schema.load(read_json(text, schema, 4096)), card, Limits(), 1)
        except ValidationError as error:
            return error

    run(100_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(type(run(megabytes * 10**6)).__name__)
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 / megabytes)
"""


def unit_of(tokens: list[int]) -> bytes:
    return orjson.dumps(sample(tokens, mask=[1] * len(tokens)))


@pytest.mark.parametrize(
    ("unit", "said"),
    [
        (b'{"a":[1]}', "ValidationError"),
        (b"{}", "ValidationError"),
        (b"[]", "ValidationError"),
        (b"[[[1]]]", "ValidationError"),
        (unit_of([1]), "ValidationError"),
        (orjson.dumps({**sample([1]), "model_input": model_input(*[[1]] * 4000)}), "ValidationError"),
        (unit_of([1] * 10_000), "ForwardBackwardRequest"),
        (unit_of([40_000] * 10_000), "ForwardBackwardRequest"),
    ],
)
def test_a_body_takes_a_few_times_the_memory_that_it_weighs(unit: bytes, said: str) -> None:
    megabytes = 60
    program = [sys.executable, "-c", textwrap.dedent(MEASURED), str(megabytes)]
    run = subprocess.run(program, cwd=ROOT, input=unit, capture_output=True, check=True)
    kind, ratio = run.stdout.decode().split()
    assert kind == said
    # What is accepted is kept as arrays, in which a token of one digit, two bytes of JSON, takes eight.
    assert float(ratio) < (5 if kind == "ValidationError" else 8)
