"""Whole lists of numbers: the index of the first offender, and the rounding to bfloat16."""

import tracemalloc
from typing import Any

import msgspec
import numpy as np
import pytest
from marshmallow import ValidationError

from schemas.arrays import FloatArray, IntegerArray, to_bfloat16
from schemas.bounds import INT64_MAX, Bounds

integers = IntegerArray(Bounds(0, INT64_MAX), description="", examples=[])
floats = FloatArray(description="", examples=[])


def offender(field: Any, values: Any) -> Any:
    with pytest.raises(ValidationError) as caught:
        field.deserialize(values)
    messages = caught.value.messages
    return next(iter(messages)) if isinstance(messages, dict) else messages[0]


def test_integers_may_be_mixed_with_decimal_strings() -> None:
    array = integers.deserialize([123, "456"])
    assert array.dtype == np.int64
    assert array.tolist() == [123, 456]


def test_decimal_strings_alone_are_integers_too() -> None:
    assert integers.deserialize(["0", "007", "9223372036854775807"]).tolist() == [0, 7, 2**63 - 1]


@pytest.mark.parametrize("wrong", ["1,2", "", ",", "12345678901234567890", "+1", "1.0"])
def test_a_wrong_string_among_strings_is_named_by_its_index(wrong: str) -> None:
    assert offender(integers, ["5", "6", wrong, wrong]) == 2


@pytest.mark.parametrize("wrong", [1.0, 1.9, True, " 7 ", "1_000", "٣", "0x10", None, [], -1, 2**63, 2**64 - 1, "-1"])
def test_the_first_wrong_integer_is_named_by_its_index(wrong: Any) -> None:
    assert offender(integers, [5, "6", wrong, wrong]) == 2


@pytest.mark.parametrize("wrong", ["1", True, None, [], {}, 3.5e38, float("nan"), float("-inf"), 2**130])
def test_the_first_wrong_number_is_named_by_its_index(wrong: Any) -> None:
    assert offender(floats, [1, 0.5, wrong, wrong]) == 2


@pytest.mark.parametrize("values", [None, "12", {"0": 1}, 7])
def test_what_is_not_a_list_is_refused(values: Any) -> None:
    assert offender(integers, values) in ("must be a list", "Field may not be null.")


def test_numbers_become_float32() -> None:
    array = floats.deserialize([1, 0.1, -2.5, 3.4028234663852886e38, 2**64 - 1])
    assert array.dtype == np.float32
    assert array.tolist() == [1.0, 0.10000000149011612, -2.5, 3.4028234663852886e38, 1.8446744073709552e19]


@pytest.mark.parametrize("wrong", [str(2**63), str(-(2**63) - 1), str(2**64), "1.0", '"x"'])
def test_of_the_text_of_a_list_the_first_wrong_integer_is_named_too(wrong: str) -> None:
    assert offender(integers, msgspec.Raw(f'[5, "6", {wrong}, {wrong}]'.encode())) == 2
    assert offender(integers, msgspec.Raw(f"[5, 6, {wrong}, {wrong}]".encode())) == 2


def test_an_integer_of_many_digits_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """To read one takes the square of its digits, and a body may have thousands."""
    read = []
    monkeypatch.setattr(IntegerArray, "_refuse", lambda *arguments: read.append(arguments))
    assert "infinity" in offender(integers, msgspec.Raw(b"[%b, 1]" % (b"1" * 4000)))
    assert not read


def test_decimal_strings_take_a_few_times_their_size_of_memory() -> None:
    count = 2**18
    text = msgspec.Raw(b"[" + b",".join([b'"123"'] * count) + b"]")
    tracemalloc.start()
    try:
        integers.deserialize(text)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 150 * count


@pytest.mark.parametrize("field", [integers, floats])
def test_an_empty_list_is_an_empty_array(field: Any) -> None:
    assert field.deserialize([]).shape == (0,)


@pytest.mark.parametrize(
    ("value", "rounded"),
    [
        (-1.2, -1.203125),
        (1.0, 1.0),
        (0.0, 0.0),
        (1.00390625, 1.0),  # halfway between 1 and 1.0078125: to the even one
        (1.01171875, 1.015625),  # halfway between 1.0078125 and 1.015625: to the even one
        (-0.8, -0.80078125),
        (1e-40, 9.183549615799121e-41),  # a subnormal: the nearest multiple of 2**-133
    ],
)
def test_bfloat16_rounds_to_nearest_and_ties_to_even(value: float, rounded: float) -> None:
    assert to_bfloat16(np.array([value], dtype=np.float32)) == np.float32(rounded)
