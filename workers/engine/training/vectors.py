"""Reductions of vectors of millions of numbers, at the memory's bandwidth."""

import math

import torch
from torch import Tensor
from torch.linalg import vector_norm

# Squares are summed in fp32 within blocks of this size, and the sums of blocks in fp64.
BLOCK = 1024
# Norms between these: no square that matters overflows or underflows in fp32.
SAFE_NORMS = (1e-12, 1e18)


def norm(vector: Tensor) -> float:
    """The L2 norm, to seven digits at any size of the numbers; not finite where they are not."""
    whole = len(vector) // BLOCK * BLOCK
    parts = (vector_norm(vector[:whole].view(-1, BLOCK), dim=1), vector_norm(vector[whole:]).view(1))
    found = float(vector_norm(torch.cat(parts), dtype=torch.float64))
    least, most = SAFE_NORMS
    return found if least <= found <= most else float(vector_norm(vector, dtype=torch.float64))


def is_finite(vector: Tensor) -> bool:
    """Whether all its numbers are."""
    # Infinities and NaNs do not leave a sum; one that is too large for fp32 proves nothing.
    return math.isfinite(float(vector.sum())) or bool(vector.isfinite().all())
