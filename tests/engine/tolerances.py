"""How far a result may be from the exact one, from the format of its numbers and the number of its summands.

After Higham, Accuracy and Stability of Numerical Algorithms (2nd ed., 2002), and for long sums Higham and Mary, A New
Approach to Probabilistic Rounding Error Analysis (2019, doi:10.1137/18M1226312).
"""

import math

import torch
from torch import Tensor

DTYPES = [torch.float32, torch.bfloat16]
# Of the probabilistic bound: a sum of n numbers exceeds it with a probability below 2 n exp(-LAMBDA^2 / 2) = n 3e-14.
LAMBDA = 8.0
# Roundings that fp32's exp, log and their like are worth: two units in the last place, on any machine.
FUNCTION = 4


def unit_roundoff(dtype: torch.dtype) -> float:
    """The largest relative error of one rounding to nearest: half a unit in the last place of 1."""
    return torch.finfo(dtype).eps / 2


def gamma(roundings: float, dtype: torch.dtype = torch.float32) -> float:
    """The largest relative error of a product of so many roundings (Lemma 3.1). A dot product of n terms, summed in
    any order, is off by gamma(n) times the sum of its terms' absolute values (3.5)."""
    error = roundings * unit_roundoff(dtype)
    return error / (1 - error)


def long_gamma(summands: int, dtype: torch.dtype = torch.float32) -> float:
    """The same for so many summands that gamma says nothing: it grows with the root of their number, all but surely."""
    return min(gamma(summands, dtype), math.expm1(LAMBDA * math.sqrt(summands) * unit_roundoff(dtype) * 1.01))


def rounded(exact: Tensor, off: Tensor | float, dtype: torch.dtype, times: int = 1) -> Tensor:
    """How far a number may be that was `off` in fp32 and then rounded to `dtype`, so many times where a formula says
    so; in fp32 that is no more."""
    off = torch.as_tensor(off, dtype=torch.float64).expand_as(exact)
    return off if dtype is torch.float32 else off + gamma(times, dtype) * (exact.double().abs() + off)


def of_products(x_MI: Tensor, weight_OI: Tensor, *added_MO: Tensor) -> Tensor:
    """[M, O]: how far x W^T plus what is added may be in fp32, of rounded operands."""
    sizes_MO = x_MI.double().abs() @ weight_OI.double().abs().T
    return gamma(x_MI.shape[1] + len(added_MO)) * sum((part.double().abs() for part in added_MO), start=sizes_MO)


def assert_within(found: Tensor, exact: Tensor, bound: Tensor | float) -> None:
    """Every number of `found` is within its own bound."""
    off = (found.double() - exact.double()).abs()
    share = off / torch.as_tensor(bound, dtype=torch.float64).clamp(min=torch.finfo(torch.float32).tiny)
    assert (share <= 1).all(), f"off by {share.max().item():.2f} times what the numbers' format allows"
