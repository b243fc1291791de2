"""Samples into packed arrays: by hand, and against a sample-by-sample rule."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.forward_backward import ForwardBackwardRequest
from domain.limits import Limits
from domain.model import ModelCard
from schemas.forward_backward import ForwardBackwardBodySchema, forward_backward_request
from tests.schemas.bodies import cross_entropy, grpo, sample

CARD = ModelCard(name="tiny", vocab_size=64, context_length=64)


def request_of(body: dict[str, Any]) -> ForwardBackwardRequest:
    return forward_backward_request(ForwardBackwardBodySchema().load(body), CARD, Limits(), horizon=1024)


def test_with_target_tokens_entry_i_predicts_target_i() -> None:
    request = request_of(cross_entropy(sample([1, 2, 3], [2, 3, 4], [0, 1, 1])))
    assert request.offsets.tolist() == [0, 3]
    assert request.tokens_T.tolist() == [1, 2, 3]
    assert request.targets_T.tolist() == [2, 3, 4]
    assert request.weights_T.tolist() == [0, 1, 1]


def test_without_them_entry_i_belongs_to_token_i_and_entry_0_is_dropped() -> None:
    whole = sample([1, 2, 3], None, [1, 0, 1], advantages=[7.0, 8.0, 9.0], generator_logprobs=[-7.0, -8.0, -9.0])
    request = request_of(grpo(whole))
    assert request.offsets.tolist() == [0, 2]
    assert request.tokens_T.tolist() == [1, 2]
    assert request.targets_T.tolist() == [2, 3]
    assert request.weights_T.tolist() == [0, 1]
    assert request.advantages_T is not None
    assert request.advantages_T.tolist() == [0, 9]


def test_what_the_mask_excludes_leaves_nothing_behind() -> None:
    one, other = (
        request_of(grpo(sample([1, 2], [2, 3], [1, 0], advantages=[1.0, a], generator_logprobs=[-1.0, q])))
        for a, q in [(5.0, -9.0), (-3.4e38, 3.4e38)]
    )
    for name in ("advantages_T", "generator_logprobs_T"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist()


def test_a_sequence_of_one_token_has_no_entries() -> None:
    request = request_of(cross_entropy(sample([5]), sample([6], [7]), sample([8])))
    assert request.offsets.tolist() == [0, 0, 1, 1]
    assert request.targets_T.tolist() == [7]


def test_all_arrays_have_the_stored_types() -> None:
    request = request_of(grpo(sample([1, 2], None, [1, 1], advantages=[1, 1], generator_logprobs=[0, 0])))
    assert [array.dtype.name for array in (request.offsets, request.tokens_T, request.targets_T)] == [
        "int64",
        "int32",
        "int32",
    ]
    floats = (request.weights_T, request.advantages_T, request.generator_logprobs_T)
    assert [array.dtype.name for array in floats if array is not None] == ["float32"] * 3


@st.composite
def grpo_samples(draw: st.DrawFn) -> dict[str, Any]:
    length = draw(st.integers(1, 6))

    def entries(values: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(values, min_size=length, max_size=length))

    token, number = st.integers(0, 63), st.floats(-100, 100, width=32)
    targets = entries(token) if draw(st.booleans()) else None
    mask = entries(st.integers(0, 1)) if draw(st.booleans()) else None
    return sample(entries(token), targets, mask, advantages=entries(number), generator_logprobs=entries(number))


def one_by_one(body: dict[str, Any]) -> list[tuple[int, int, float, float, float]]:
    """(token, target, weight, advantage, logprob) of every entry, as the API documents them."""
    entries = []
    for one in body["samples"]:
        tokens = one["model_input"]["chunks"][0]["encoded_text"]["tokens"]
        inputs = one["loss_inputs"]
        mask = inputs.get("loss_mask", {"data": [1] * len(tokens)})["data"]
        advantages, logprobs = (inputs["grpo_inputs"][name]["data"] for name in ("advantages", "generator_logprobs"))
        if "target_tokens" in inputs:
            rows = [(tokens[i], inputs["target_tokens"]["data"][i], i) for i in range(len(tokens))]
        else:
            rows = [(tokens[i - 1], tokens[i], i) for i in range(1, len(tokens))]
        entries += [(a, b, mask[i], advantages[i] * mask[i], logprobs[i] * mask[i]) for a, b, i in rows]
    return entries


@given(st.lists(grpo_samples(), min_size=1, max_size=5))
def test_packing_in_bulk_is_packing_one_by_one(samples: list[dict[str, Any]]) -> None:
    body = grpo(*samples)
    request = request_of(body)
    names = ("tokens_T", "targets_T", "weights_T", "advantages_T", "generator_logprobs_T")
    packed = list(zip(*(getattr(request, name).tolist() for name in names), strict=True))
    assert packed == [pytest.approx(entry) for entry in one_by_one(body)]
    assert request.offsets[-1] == len(packed)
    assert (np.diff(request.offsets) >= 0).all()
