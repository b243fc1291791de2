"""Norms and finiteness of whole vectors."""

import math

import numpy as np
import pytest
import torch

from workers.engine.training.vectors import is_finite, norm


@pytest.mark.parametrize("length", [0, 1, 1023, 1024, 5000, 100_001])
@pytest.mark.parametrize("size", [1e-40, 1e-30, 1e-15, 1.0, 1e15, 1e25, 1e38])
def test_a_norm_is_that_of_float64(length: int, size: float) -> None:
    vector = torch.randn(length, generator=torch.Generator().manual_seed(length)) * size
    vector = vector.clamp(-3e38, 3e38)
    assert norm(vector) == pytest.approx(np.linalg.norm(vector.double().numpy()), rel=1e-6)


def test_a_few_large_numbers_among_small_ones_count_as_they_should() -> None:
    vector = torch.full((10_000,), 1e-22)
    vector[7], vector[9000] = 3e-10, 4e-10
    assert norm(vector) == pytest.approx(5e-10, rel=1e-6)


@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("place", [0, 1000, 4999])
def test_one_number_that_is_not_finite_shows(bad: float, place: int) -> None:
    vector = torch.ones(5000)
    vector[place] = bad
    assert not is_finite(vector)
    assert not math.isfinite(norm(vector))


def test_opposite_infinities_do_not_cancel_out_and_large_numbers_are_finite() -> None:
    assert not is_finite(torch.tensor([math.inf, 1.0, -math.inf]))
    assert is_finite(torch.full((1000,), 3e38))
    assert is_finite(torch.zeros(0))
