"""The gradient of a low-rank matrix: a sum over rows of outer products."""

from torch import Tensor

from workers.engine.backends.frozen_linear import grad_product
from workers.engine.kernels import functional
from workers.engine.kernels.kernel import have_kernels


def outer(u_NS: Tensor, v_NC: Tensor, factor: float = 1.0) -> Tensor:
    """factor * u^T v, fp32 [S, C], outside of autograd; each row's numbers lie together. On a CPU no sum is rounded to
    the dtype of u and v on its way."""
    if not have_kernels(u_NS.device, u_NS.dtype):
        # In bf16 on a GPU; in fp32 on a CPU, where a sum of bf16 numbers would be rounded to bf16.
        u_NS, v_NC = (part.float() if part.device.type == "cpu" else part for part in (u_NS, v_NC))
        return grad_product(u_NS.T, v_NC).float() * factor
    return functional.outer(u_NS, v_NC, factor)
