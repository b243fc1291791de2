"""Scalars: what is a number, what only looks like one."""

from typing import Any

import pytest
from marshmallow import ValidationError

from domain.session import SessionStatus
from schemas.bounds import INT64_MAX, INT64_MIN, Bounds
from schemas.fields import AnyCaseChoice, Choice, Integer, Number, prefixed

UNIT = Bounds(0.0, 1.0, below=1.0)


@pytest.mark.parametrize(
    ("value", "integer"),
    [(123, 123), ("456", 456), ("-7", -7), ("007", 7), (0, 0), (INT64_MAX, INT64_MAX), (str(INT64_MIN), INT64_MIN)],
)
def test_integers_are_json_integers_or_decimal_strings(value: Any, integer: int) -> None:
    assert Integer(description="").deserialize(value) == integer


@pytest.mark.parametrize(
    "value",
    [1.0, 1.9, True, False, " 7 ", "1_000", "٣", "0x10", "+1", "", "-", "1.0", "1e3", [], {}],
)
def test_nothing_else_is_an_integer(value: Any) -> None:
    with pytest.raises(ValidationError, match="must be an integer"):
        Integer(description="").deserialize(value)


@pytest.mark.parametrize(
    "value",
    [2**63, -(2**63) - 1, str(2**63), "9" * 100, 1.8446744073709552e19],
)
def test_an_integer_beyond_64_bits_is_refused(value: Any) -> None:
    with pytest.raises(ValidationError):
        Integer(description="").deserialize(value)


@pytest.mark.parametrize("value", [0, 256, "256"])
def test_an_integer_on_a_bound_is_within_it(value: Any) -> None:
    assert Integer(Bounds(0, 256), description="").deserialize(value) == int(value)


@pytest.mark.parametrize(("value", "bound"), [(0, "at least 1"), (257, "at most 256"), (1 << 40, "at most 256")])
def test_an_integer_out_of_bounds_is_told_the_bound_that_it_breaks(value: int, bound: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Integer(Bounds(1, 256), description="").deserialize(value)
    assert refused.value.messages == [f"must be {bound}"]


@pytest.mark.parametrize("value", [0, 0.0, 0.5, 0.9999])
def test_numbers_within_a_half_open_range(value: Any) -> None:
    assert Number(UNIT, description="").deserialize(value) == value


@pytest.mark.parametrize("value", [1, 1.0, -0.1, "0.5", True, None, [0.5], float("nan"), float("inf")])
def test_strings_booleans_and_what_is_not_finite_are_no_numbers(value: Any) -> None:
    with pytest.raises(ValidationError):
        Number(UNIT, description="").deserialize(value)


@pytest.mark.parametrize("value", [3.5e38, -3.5e38, 1e300, 2**200])
def test_a_number_that_does_not_fit_float32_is_refused(value: Any) -> None:
    with pytest.raises(ValidationError, match=r"at (least -|most )3\.4028\d*e\+38"):
        Number(description="").deserialize(value)


def test_a_choice_reads_and_writes_the_wire_name() -> None:
    field = Choice(prefixed(SessionStatus, "S_"), description="")
    assert field.deserialize("S_RUNNING") is SessionStatus.RUNNING
    assert field._serialize(SessionStatus.ERROR, None, None) == "S_ERROR"


@pytest.mark.parametrize("value", ["RUNNING", "s_running", "", 2, None, [], {}])
def test_a_choice_takes_its_own_names_only(value: Any) -> None:
    with pytest.raises(ValidationError):
        Choice(prefixed(SessionStatus, "S_"), description="").deserialize(value)


def test_case_does_not_matter_where_it_is_said_not_to() -> None:
    field = AnyCaseChoice({"token_mean": 1, "AGG_TOKEN_MEAN": 1}, description="")
    assert [field.deserialize(name) for name in ("Token_Mean", "TOKEN_MEAN", "agg_token_mean")] == [1, 1, 1]
