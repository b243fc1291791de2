"""Which backend computes."""

import torch

from workers.engine.backends.backend import Backend
from workers.engine.backends.native.backend import NativeBackend
from workers.engine.backends.torch.backend import TorchBackend
from workers.engine.kernels.kernel import have_kernels

NATIVE: Backend = NativeBackend()
TORCH: Backend = TorchBackend()


def backend_for(device: torch.device, dtype: torch.dtype) -> Backend:
    """For a base model of this dtype on this device: our kernels, where this process has them for it, or torch."""
    return NATIVE if have_kernels(device, dtype) else TORCH
