"""Products of plain matrices, outside of autograd."""

import os

import torch
from torch import Tensor
from torch.nn.functional import linear

# oneDNN reads this at its first product. With AMX it sums a row of bf16 in an order that depends on how many others
# there are (docs/decisions/0032-without-kernels.md).
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")


def outer(u_NS: Tensor, v_NC: Tensor, factor: float = 1.0) -> Tensor:
    """factor * u^T v, fp32 [S, C]."""
    # In bf16 on a GPU; in fp32 on a CPU, where a sum of bf16 numbers would be rounded to bf16.
    u_NS, v_NC = (part.float() if part.device.type == "cpu" else part for part in (u_NS, v_NC))
    return grad_product(u_NS.T, v_NC).float() * factor


def grad_product(grad_MO: Tensor, weight_OI: Tensor, plus_MI: Tensor | None = None) -> Tensor:
    """grad W + plus of plain matrices, otherwise as `product`. A gradient is not asked to have the same bits in any
    batch, so that in fp32 BLAS may compute it, which reads W as it lies; oneDNN takes up to 1.7 times as long."""
    dtype = computed_in(grad_MO.device, grad_MO.dtype)
    if dtype is not torch.float32:
        return product(grad_MO, weight_OI.T, plus_MI)
    grad_MO, weight_OI = grad_MO.to(dtype), weight_OI.to(dtype)
    return grad_MO @ weight_OI if plus_MI is None else torch.addmm(plus_MI.to(dtype), grad_MO, weight_OI)


def product(x_MI: Tensor, weight_OI: Tensor, plus_MO: Tensor | None = None) -> Tensor:
    """x W^T + plus of plain matrices in any layout, outside of autograd, in the dtype that it is computed in: whoever
    adds it to something else need not round it before."""
    dtype = computed_in(x_MI.device, x_MI.dtype)
    plus_MO = None if plus_MO is None else plus_MO.to(dtype)
    method = linear_by_onednn if is_fast(x_MI.device, dtype) else linear_by_torch
    return method(x_MI.to(dtype), weight_OI.to(dtype), None, plus_MO)


def computed_in(device: torch.device, dtype: torch.dtype) -> torch.dtype:
    """What products of a dtype are summed in, and added to, before they are rounded to it: fp32 on a CPU without
    instructions for bf16, where torch's own would round a sum before something is added to it."""
    return torch.float32 if device.type == "cpu" and not is_fast(device, dtype) else dtype


def is_fast(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether oneDNN has products of this dtype for this CPU."""
    if device.type != "cpu" or not torch.backends.mkldnn.is_available():
        return False
    return dtype is torch.float32 or (dtype is torch.bfloat16 and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported()))


def linear_by_torch(x_MI: Tensor, weight_OI: Tensor, bias_O: Tensor | None, plus_MO: Tensor | None) -> Tensor:
    y_MO = linear(x_MI, weight_OI, bias_O)
    return y_MO if plus_MO is None else y_MO + plus_MO


def linear_by_onednn(x_MI: Tensor, weight: Tensor, bias_O: Tensor | None, plus_MO: Tensor | None) -> Tensor:
    if len(x_MI) == 1:
        # For one row alone oneDNN has another kernel, with sums in another order.
        twice = None if plus_MO is None else torch.cat([plus_MO, plus_MO])
        return linear_by_onednn(torch.cat([x_MI, x_MI]), weight, bias_O, twice)[:1]
    y_MO: Tensor
    if plus_MO is None:
        y_MO = torch.ops.mkldnn._linear_pointwise(x_MI, weight, bias_O, "none", [], "")
    else:
        y_MO = torch.ops.mkldnn._linear_pointwise.binary(x_MI, plus_MO, weight, bias_O, "add")
    return y_MO
