"""The gradient of a low-rank matrix: a sum over rows of outer products."""

import torch
from torch import Tensor

from workers.engine.backends.frozen_linear import grad_product
from workers.engine.kernels.kernel import Kernel, have_kernels

_OUTER = Kernel("outer", "pnpnpnnnx")


def outer(u_NS: Tensor, v_NC: Tensor, factor: float = 1.0) -> Tensor:
    """factor * u^T v, fp32 [S, C], outside of autograd; each row's numbers lie together. On a CPU no sum is rounded to
    the dtype of u and v on its way."""
    if not have_kernels(u_NS.device, u_NS.dtype):
        # In bf16 on a GPU; in fp32 on a CPU, where a sum of bf16 numbers would be rounded to bf16.
        u_NS, v_NC = (part.float() if part.device.type == "cpu" else part for part in (u_NS, v_NC))
        return grad_product(u_NS.T, v_NC).float() * factor
    sums_SC = torch.empty(u_NS.shape[1], v_NC.shape[1])
    _OUTER(u_NS.dtype, u_NS, u_NS.stride(0), v_NC, v_NC.stride(0), sums_SC, len(u_NS), *sums_SC.shape, factor)
    return sums_SC
