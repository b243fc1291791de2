"""How far a result in fp32 or bf16 may be from one in float64."""

import torch
from torch import Tensor

DTYPES = [torch.float32, torch.bfloat16]


def assert_rounded(ours: Tensor, exact: Tensor, dtype: torch.dtype, roundings: int = 1, atol: float = 2e-6) -> None:
    """`ours` is what fp32 makes of `exact`, rounded to `dtype` so many times."""
    assert ours.dtype is dtype
    # Half a unit in the last place of bf16's eight bits; and what fp32 may lose on the way.
    step = 2.0**-8 if dtype is torch.bfloat16 else 0.0
    torch.testing.assert_close(ours.double(), exact.double(), rtol=roundings * step + 4e-6, atol=atol)
