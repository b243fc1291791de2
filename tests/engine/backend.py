"""The backend that a test of the engine's parts is about."""

import torch

from workers.engine.backends.backend import Backend
from workers.engine.backends.choice import backend_for

CPU = torch.device("cpu")


def backend_of(dtype: torch.dtype = torch.float32) -> Backend:
    """What a base model of this dtype would be given here, with the kernels that the test has chosen."""
    return backend_for(CPU, dtype)
